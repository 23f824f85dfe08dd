#include <algorithm>
#include <catch2/catch.hpp>

#include "models/plan/fields.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// What `--plan` with this plan's text becomes.
Plan read_back(const Plan& plan) {
  const Document document = Document::from(plan_from_text(to_text(plan)), "--plan");
  std::vector<std::string> assumptions;
  return read_plan(document.root(), tiny_gpt(8), plan.gpus(), assumptions);
}

/// Values of a field: all words, both flags, and sizes from the least to the most.
std::vector<Json> values_of(const PlanField& field) {
  using Kind = PlanValue::Kind;
  std::vector<Json> values;
  switch (field.value.kind) {
    case Kind::count:
      return {field.value.least, field.value.least + 1, field.value.most};
    case Kind::flag:
      return {false, true};
    case Kind::word:
      for (const std::string& each : field.value.words()) values.push_back(field.json_of(each));
      return values;
    case Kind::word_list: {
      Json all = Json::array();
      for (const std::string& each : field.value.words()) {
        all.push_back(each);
        values.push_back(Json::array({each}));
      }
      values.push_back(all);
      return values;
    }
    case Kind::share:
      return {0.01, 0.3, 1.0, 1e-7};
    case Kind::factor:
      return {1.0, 1.25, 7.5};
    case Kind::bytes:
      return {"1 B", "25 MB", "26214401 B"};
    default:
      return {Json{field.value.least + 1}, Json{2, 3, 3}, Json{field.value.most, 1}};
  }
}

Plan read_plan_of(const Json& json) {
  const Document document = Document::from(json, "plan.json");
  std::vector<std::string> assumptions;
  return read_plan(document.root(), tiny_gpt(8), 64, assumptions);
}

/// Where a field's value depends on another: a pipeline, several chunks, top-k.
std::vector<Plan> plans_before() {
  return {read_plan_of(Json::object()),
          read_plan_of({{"pipeline", 2}}),
          read_plan_of({{"pipeline", 2}, {"virtual_stages", 4}}),
          read_plan_of({{"compression", "top-k"}}),
          read_plan_of({{"compression", "power-sgd"}}),
          read_plan_of({{"context", 4}, {"context_form", "hierarchical"}, {"context_heads", 2}})};
}

/// Calls `check` with every value of every field, in every one of those plans that it goes with.
template <class Check>
void with_every_value(Check check) {
  for (const PlanField& field : plan_fields()) {
    for (const Json& value : values_of(field)) {
      for (Plan plan : plans_before()) {
        const Document document = Document::from(value, std::string{field.key});
        const bool needs_top_k = field.value.kind == PlanValue::Kind::share;
        if (needs_top_k && plan.compression.kind != Compression::top_k) continue;
        const bool needs_power_sgd = field.key == "compression_rank";
        if (needs_power_sgd && plan.compression.kind != Compression::power_sgd) continue;
        const bool needs_context = field.key.substr(0, 8) == "context_";
        if (needs_context && plan.context == 1) continue;
        if (field.key.starts_with("lora_")) plan.task = Task::lora;
        field.read_value(document.root(), plan);
        check(field, value, plan);
      }
    }
  }
}

TEST_CASE("A plan goes out as a flag and comes back equal, for every value of every field") {
  with_every_value([](const PlanField& field, const Json& value, const Plan& plan) {
    INFO(field.key << " " << value << ": " << to_text(plan));
    CHECK(to_text(plan).find(' ') == std::string::npos);
    CHECK(to_json(read_back(plan)) == to_json(plan));
  });
}

TEST_CASE("A plan goes out as JSON and comes back equal, for every value of every field") {
  with_every_value([](const PlanField& field, const Json& value, const Plan& plan) {
    INFO(field.key << " " << value);
    CHECK(to_json(read_plan_of(to_json(plan))) == to_json(plan));
    const Json written = field.json(plan);
    if (field.value.kind != PlanValue::Kind::bytes && !written.is_null()) CHECK(written == value);
  });
}

TEST_CASE("A field that no assumption mentions is one whose default goes without saying") {
  const Document document = Document::from(Json::object(), "plan.json");
  std::vector<std::string> assumptions;
  read_plan(document.root(), tiny_gpt(8), 64, assumptions);
  for (const PlanField& field : plan_fields()) {
    const std::string head = "/" + std::string{field.key} + ":";
    const bool reported = std::any_of(assumptions.begin(), assumptions.end(),
                                      [&](const auto& each) { return each.rfind(head, 0) == 0; });
    // One chunk has nothing to cut.
    const bool expected =
        field.by_default == PlanField::Default::reported && field.key != "stage_layers";
    INFO(field.key);
    CHECK(reported == expected);
  }
}

TEST_CASE("The text of a pipeline says whether embedding and head count, whatever the stack does") {
  // BLOOM's stack counts them where a plan does not say.
  Plan plan;
  plan.pipeline = 2;
  plan.batch.seq_len = 8;
  CHECK(to_text(plan) ==
        "tensor=1,pipeline=2,data=1,micro_batch=1,global_batch=1,seq_len=8,precision=bf16,"
        "recompute=none,embedding_counts=false");
}

}  // namespace
}  // namespace orrery::models
