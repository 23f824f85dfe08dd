#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "models/plan/fields.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

std::string plan_readme() {
  std::ostringstream text;
  text << std::ifstream{ORRERY_SOURCE "/models/plan/README.md"}.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("The README of plans holds the fields as the command prints them") {
  const std::string tables = orrery("show plan-fields --markdown").out;
  REQUIRE(!tables.empty());
  const bool same = plan_readme().find("\n" + tables) != std::string::npos;
  INFO("models/plan/README.md needs: orrery show plan-fields --markdown\n" << tables);
  CHECK(same);
}

TEST_CASE("Every field of a plan is shown once, with its meaning, values and default") {
  const Json shown = parsed(orrery("show plan-fields --json").out)["plan_fields"];
  REQUIRE(shown.size() == models::plan_fields().size());
  for (const models::PlanField& field : models::plan_fields()) {
    INFO(field.key);
    int times = 0;
    for (const Json& each : shown) {
      if (each["field"] != field.key) continue;
      ++times;
      CHECK(each["group"] == word_of(models::plan_group_words, field.group));
      CHECK(each["meaning"] == field.meaning);
      CHECK(each["values"] == field.accepted());
      CHECK(each["default"] == field.default_text());
    }
    CHECK(times == 1);
    REQUIRE(!field.meaning.empty());
    CHECK(field.meaning.back() != '.');
    for (const std::string& cell :
         {std::string{field.meaning}, field.accepted(), field.default_text()}) {
      CHECK(cell.find_first_of("|\n") == std::string::npos);  // a cell of a Markdown table
    }
  }
}

TEST_CASE("A field of a plan is shown by its name, and a wrong name is refused") {
  CHECK(orrery("show plan-fields zero").out ==
        "model state\n"
        "  zero                    ZeRO stage, what replicas shard: nothing (0), optimizer state "
        "(1),\n"
        "                          gradients too (2), parameters too (3; FSDP)\n"
        "                          0, 1, 2 or 3; default 0, or the stack's\n");
  CHECK(refused_line("show plan-fields zer0")
            .find("show plan-fields: unknown 'zer0' (did you mean 'zero'?); known: task tensor "
                  "sequence ") == 0);
}

TEST_CASE("Values and defaults of a plan's fields are what their members hold") {
  const auto values = [](const char* key) { return models::plan_field(key).accepted(); };
  const auto usual = [](const char* key) { return models::plan_field(key).default_text(); };
  CHECK(values("virtual_stages") == "1 to 4096");
  CHECK(values("recompute") == "none, selective or full");
  CHECK(values("lora_targets") ==
        "some of qkv, projection, up, down, q_proj, k_proj, v_proj, gate_proj, up_proj, "
        "embed_tokens, lm_head; o_proj is projection, down_proj is down");
  CHECK(values("capacity") == "a number above 0");
  CHECK(usual("tensor") == "1");
  CHECK(usual("overlap") == "true");
  CHECK(usual("expert_tensor") == "as tensor");
  CHECK(usual("lora_targets") == "qkv:projection");
  CHECK(usual("fused_amax") == "none");
  CHECK(usual("compression_share") == "0.01");
  CHECK(usual("imbalance") == "1");
  CHECK(usual("precision") == "bf16");
  CHECK(usual("recompute") == "none, or the stack's");
}

}  // namespace orrery::scenarios
