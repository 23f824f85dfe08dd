#include "scenarios/whatif/sensitivity.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

const Sensitivity* number(const SensitivityReport& report, const std::string& pointer) {
  for (const Sensitivity& each : report.numbers) {
    if (each.pointer == pointer) return &each;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("A number in a text is scaled in its unit") {
  CHECK(scaled_number("3.35 TB/s", 2) == Json("6.7 TB/s"));
  CHECK(scaled_number("$4/h", 0.5) == Json("$2/h"));
  CHECK(scaled_number(0.8, 0.5) == Json(0.4));
  CHECK(scaled_number(8, 1.5) == Json(12.0));
  for (const Json& none : {Json("dgx-h100 x 8"), Json("2024-10-06"), Json("bf16"), Json(0),
                           Json("0 s"), Json(nullptr), Json(true), Json("")}) {
    CHECK_FALSE(scaled_number(none, 2));
  }
}

TEST_CASE("The elasticity of a number is the step's change by what-ifs of one percent each way") {
  const Scenario scenario = Scenario::load("llama3-8b-8-h100");
  const SensitivityReport report = sensitivity(scenario, {}, {.threads = 2, .progress = {}});
  CHECK_FALSE(report.stopped);
  CHECK(report.numbers.size() > 10);
  const std::string pointer = "/cluster/node/gpu/memory_bandwidth";  // "3.35 TB/s"
  const Sensitivity* memory = number(report, pointer);
  REQUIRE(memory != nullptr);
  const auto step = [&](const char* rate) {
    return std::log(seconds(models::predict(scenario.replace({{pointer, rate}}).question()).step));
  };
  CHECK(memory->value == "3.35 TB/s");
  CHECK(memory->step ==
        Approx((step("3.3835 TB/s") - step("3.3165 TB/s")) / (std::log(1.01) - std::log(0.99))));
  CHECK(memory->step < 0);  // more bandwidth, less time
  REQUIRE(memory->tenth[0]);
  CHECK(std::log(seconds(*memory->tenth[0])) == Approx(step("3.015 TB/s")));
  // A dollar more for an hour of a GPU is as much more for the step, and no time.
  const Sensitivity* price = number(report, "/cluster/price_per_gpu_hour");
  REQUIRE(price != nullptr);
  CHECK(price->step == 0);
  CHECK(*price->cost == Approx(1));
  // A step that takes as much longer costs as much more.
  CHECK(*memory->cost == Approx(memory->step).epsilon(1e-6));
  for (std::size_t i = 1; i < report.numbers.size(); ++i) {
    CHECK(std::abs(report.numbers[i - 1].step) >= std::abs(report.numbers[i].step));
  }
}

TEST_CASE("Where a step waits for its input, the input's numbers move it") {
  const Json found =
      parsed(orrery("simulate vit-huge-32-a100-8k-images --sensitivity --json").out)["sensitivity"];
  bool cores = false;
  for (const Json& each : found) {
    if (each["pointer"] != "/data/decode/cores") continue;
    cores = true;
    // Decoding is all of the step: one percent of cores more is one percent of time less.
    CHECK(each["step"].get<double>() == Approx(-1).margin(0.02));
  }
  CHECK(cores);
}

TEST_CASE("At the number that a slower plan needs to win, both plans take equally long") {
  const Scenario scenario = Scenario::load("llama3-70b-64-h100");  // tensor 4, pipeline 8
  const Scenario versus = scenario.replace({{"/plan/tensor", 8}, {"/plan/pipeline", 4}});
  const CrossingReport report = crossings(scenario, versus, {}, {.threads = 2, .progress = {}});
  CHECK_FALSE(report.versus_is_faster);
  CHECK(report.faster_step < report.slower_step);
  CHECK(report.numbers.size() >= 3);
  const auto step = [](const Scenario& asked, const Crossing& at) {
    const bool text = at.value.find(' ') != std::string::npos || at.value[0] == '$';
    const Json needed = text ? Json(at.needed) : Json::parse(at.needed);
    return seconds(models::predict(asked.replace({{at.pointer, needed}}).question()).step);
  };
  for (const Crossing& each : report.numbers) {
    INFO(each.pointer << " " << each.needed);
    CHECK(step(scenario, each) == Approx(step(versus, each)).epsilon(1.1e-4));
    CHECK(each.factor <= 4.001);
    CHECK(each.factor >= 0.2499);
  }
  for (std::size_t i = 1; i < report.numbers.size(); ++i) {
    CHECK(std::abs(std::log(report.numbers[i - 1].factor)) <=
          std::abs(std::log(report.numbers[i].factor)));
  }
  const CrossingReport turned = crossings(versus, scenario, {}, {.threads = 2, .progress = {}});
  CHECK(turned.versus_is_faster);
  CHECK(turned.numbers.size() == report.numbers.size());
}

TEST_CASE("simulate --sensitivity adds a table, a member and a picture") {
  const Scratch scratch;
  const std::string svg = scratch.path("tornado.svg");
  const Ran table = orrery("simulate llama3-8b-8-h100 --sensitivity --svg " + svg);
  INFO(table.error);
  CHECK(table.exit_code == 0);
  CHECK(table.out.find("\nWhat the answer depends on\n") != std::string::npos);
  CHECK(table.out.find("/cluster/node/gpu/memory_bandwidth") != std::string::npos);
  const std::string picture = scratch.read("tornado.svg");
  CHECK(picture.starts_with("<svg"));
  CHECK(picture.find("cluster/node/gpu/memory_bandwidth  3.35 TB/s") != std::string::npos);
  const Json json = parsed(orrery("simulate llama3-8b-8-h100 --sensitivity --json").out);
  CHECK(json["sensitivity"][0]["pointer"].is_string());
  CHECK(json["sensitivity"][0]["step_time_s"]["less"].is_number());
  const Json versus =
      parsed(orrery("simulate llama3-70b-64-h100 --versus tensor=8,pipeline=4 --json").out);
  CHECK(versus["versus"]["slower"].is_string());
  CHECK(versus["versus"]["faster_step_time_s"] == versus["step_time_s"]);
  CHECK(orrery("simulate llama3-70b-64-h100 --versus tensor=8,pipeline=4")
            .out.find("\nWhat would have to change for ") != std::string::npos);
  CHECK(refused_line("simulate llama3-8b-8-h100 --svg " + svg) ==
        "--svg: is the picture of --sensitivity; state that, too");
  CHECK(refused_line("simulate llama3-8b-8-h100 --set /plan/tensor=1,2 --sensitivity") ==
        "--sensitivity: is of one step, and --set /plan/tensor lists 2 values");
}

}  // namespace orrery::scenarios
