// Names in the user's files: what a terminal or a browser would obey is refused or shown as text.

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/prediction/prediction.hpp"
#include "scenarios/report/result.hpp"
#include "scenarios/scenario/scenario.hpp"
#include "sim/input/printable.hpp"
#include "sim/input/text.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

/// Repaints the screen, ends the line, turns the direction of the rest.
const std::string hostile = "\x1b[31m\n# Step time 1 ms\xE2\x80\xAE\xC2\x9B";

using Pointer = Json::json_pointer;

/// Pointers to all strings of a document.
std::vector<Pointer> strings_in(const Json& json) {
  std::vector<Pointer> all;
  const Json flat = json.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    if (value.is_string()) all.emplace_back(pointer);
  }
  return all;
}

/// A small GPT on two nodes, expanded: with all names, sources and notes of its GPU and software.
Json named_scenario() {
  Json model{{"name", "small"}, {"model_type", "gpt2"}, {"n_layer", 2},     {"n_embd", 64},
             {"n_head", 2},     {"vocab_size", 256},    {"n_positions", 64}};
  const Json plan{{"micro_batch", 1}, {"global_batch", 32}, {"seq_len", 64}};
  return Scenario::parse(
             {{"name", "asked"}, {"model", model}, {"cluster", "dgx-h100 x 2"}, {"plan", plan}},
             "small.json")
      .json();
}

/// Lines of a report in which a terminal would obey something.
std::string obeyed_in(const std::string& report) {
  for (const std::string_view line : split(report, '\n')) {
    if (!is_printable(line) || line.starts_with("# Step time")) return std::string{line};
  }
  return {};
}

std::string reported(const Json& json) {
  try {
    const Scenario scenario = Scenario::parse(json, "small.json");
    const models::Question question = scenario.question();
    const ReportOptions options{.explain = true, .tokens = {}, .published = {}};
    return scenario.name() + "\n" + report(question, models::predict(question), options);
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("No string of a scenario reaches the terminal with characters that it obeys") {
  const Json plain = named_scenario();
  REQUIRE(reported(plain).find("small") != std::string::npos);
  std::size_t tried = 0;
  for (const Pointer& each : strings_in(plain)) {
    Json changed = plain;
    changed[each] = changed[each].get<std::string>() + hostile;
    INFO(each.to_string());
    CHECK(obeyed_in(reported(changed)).empty());
    ++tried;
  }
  CHECK(tried > 20);
}

TEST_CASE("A name with control characters is refused where it stands") {
  const Scratch scratch;
  const auto refused = [&](const char* pointer, const std::string& text) {
    Json json = named_scenario();
    json[Pointer{pointer}] = text;
    const std::string file = scratch.write("named.json", json.dump());
    const std::string line = refused_line("simulate " + file);
    return line.substr(line.find("named.json"));
  };
  CHECK(refused("/name", "x\n  Step time 1 ms") ==
        "named.json:/name: expected text without control characters, found "
        "\"x\\n  Step time 1 ms\"");
  CHECK(refused("/model/name", "\x1b[31mred") ==
        "named.json:/model/name: expected text without control characters, found "
        "\"\\u001b[31mred\"");
  CHECK(refused("/cluster/name", "a\xE2\x80\xAE") ==
        "named.json:/cluster/name: expected text without control characters, found "
        "\"a\\u202e\"");
}

TEST_CASE("Pages and pictures show names with markup as text") {
  const Scratch scratch;
  Json json = named_scenario();
  json["name"] = "<script>alert(1)</script> | [a](b) ` ]]>";
  json["cluster"]["name"] = "<img onerror=alert(1)>";
  const std::string file = scratch.write("marked.json", json.dump());
  const Ran contention = orrery("contention " + file + " --page " + scratch.path("pages"));
  INFO(contention.error);
  REQUIRE(contention.exit_code == 0);
  const Ran scale = orrery("scale " + file + " --gpus 8:16:x2 --svg " + scratch.path("scale.svg"));
  INFO(scale.error);
  REQUIRE(scale.exit_code == 0);
  for (const char* each : {"pages/contention.md", "pages/contention.svg", "scale.svg"}) {
    const std::string text = scratch.read(each);
    INFO(each);
    CHECK(text.find("script") != std::string::npos);
    CHECK(text.find("<script") == std::string::npos);
    CHECK(text.find("<img") == std::string::npos);
    const bool xml = std::string_view{each}.ends_with(".svg");
    CHECK((!xml || text.find("]]>") == std::string::npos));
  }
  const std::string page = scratch.read("pages/contention.md");
  CHECK(page.find("\\| \\[a\\](b) \\`") != std::string::npos);
  CHECK(std::ranges::count(page, '`') == 2 + 1);  // the command's span, and an escaped one
}

}  // namespace orrery::scenarios
