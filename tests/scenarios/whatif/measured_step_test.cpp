#include "scenarios/whatif/measured_step.hpp"

#include <catch2/catch.hpp>

#include <cmath>

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

Scenario plain(const std::string& plan, const std::string& software = "generic",
               const std::string& cluster = "dgx-h100 x 8") {
  return Scenario::load(
      std::nullopt,
      {.model = "llama3.1-70b", .cluster = cluster, .plan = plan, .software = software});
}

constexpr const char* usual_plan = "tensor=8,global_batch=64,seq_len=8192,zero=1";

ExplainedStep explained(const Scenario& scenario, Time measured) {
  const models::Question question = scenario.question();
  return explain_measured(scenario, question, models::predict(question), measured);
}

double sum_of_weights(const ExplainedStep& found) {
  double sum = found.weight_of_none;
  for (const Explanation& each : found.explanations) sum += each.weight;
  return sum;
}

}  // namespace

TEST_CASE("A default that is set otherwise in the measured run is found") {
  const Scenario scenario = plain(usual_plan);
  for (const char* pointer : {"/plan/recompute", "/plan/attention"}) {
    INFO(pointer);
    const Json value = pointer == std::string{"/plan/recompute"} ? Json("full") : Json("unfused");
    const Time measured = models::predict(scenario.replace({{pointer, value}}).question()).step;
    const ExplainedStep found = explained(scenario, measured);
    const auto cause = std::ranges::find_if(found.explanations, [&](const Explanation& each) {
      return each.flags.find(pointer) != std::string::npos && each.step == measured;
    });
    REQUIRE(cause != found.explanations.end());
    CHECK(cause->weight > 0);
  }
}

TEST_CASE("A measured step that is the prediction needs no explanation") {
  const Scenario scenario = plain(usual_plan);
  const ExplainedStep found =
      explained(scenario, models::predict(scenario.question()).uncertainty.p50);
  for (const Explanation& each : found.explanations) CHECK(each.weight <= found.weight_of_none);
  const Time step = models::predict(scenario.question()).step;
  CHECK(explained(scenario, scaled(step, 1.005)).explanations.empty());
  CHECK(explained(scenario, scaled(step, 1.005)).weight_of_none == 1);
}

TEST_CASE("Explanations are sorted by weight, and no weights add up to more than 1") {
  const Scenario scenario = plain(usual_plan);
  const Time step = models::predict(scenario.question()).step;
  for (const double factor : {0.8, 1.05, 1.2, 1.35, 2.0}) {
    INFO(factor);
    const ExplainedStep found = explained(scenario, scaled(step, factor));
    CHECK(sum_of_weights(found) <= 1 + 1e-9);
    CHECK(sum_of_weights(found) > 0.8);
    CHECK(std::ranges::is_sorted(found.explanations, std::greater{}, &Explanation::weight));
    for (const Explanation& each : found.explanations) {
      INFO(each.cause);
      CHECK(std::abs(std::log(ratio(found.measured, each.step))) < std::abs(std::log(factor)));
    }
  }
}

TEST_CASE("Slow parts explain slower steps only, and stragglers only those of large jobs") {
  const auto has = [](const ExplainedStep& found, const char* cause) {
    return std::ranges::any_of(found.explanations, [&](const Explanation& each) {
      return each.cause.find(cause) != std::string::npos;
    });
  };
  const Scenario small = plain(usual_plan);
  const Time step = models::predict(small.question()).step;
  CHECK(has(explained(small, scaled(step, 1.2)), "GEMMs at"));
  CHECK_FALSE(has(explained(small, scaled(step, 0.85)), "GEMMs at"));
  CHECK_FALSE(has(explained(small, scaled(step, 1.2)), "stragglers"));
  const Scenario large =
      plain("tensor=8,global_batch=512,seq_len=8192,zero=1", "megatron-lm", "dgx-h100 x 32");
  const Time of_large = models::predict(large.question()).step;
  CHECK(has(explained(large, scaled(of_large, 1.2)), "stragglers"));
}

// 10.5 s are predicted: 1.7 s and 100 s are outside its range, whatever their likeliest cause.
TEST_CASE("A step outside the range is never said to be explained") {
  const std::string asked = "simulate llama3-70b-64-h100 --measured ";
  for (const char* measured : {"1.7s", "100s"}) {
    INFO(measured);
    const Ran text = orrery(asked + measured);
    CHECK(text.out.find("outside the range of 8 in 10 cases") != std::string::npos);
    CHECK(text.out.find("nothing is left to explain") == std::string::npos);
    const Json json = parsed(orrery(asked + measured + " --json").out);
    CHECK(json["measured"]["inside_range"] == false);
  }
  CHECK(parsed(orrery(asked + "10.5s --json").out)["measured"]["inside_range"] == true);
  CHECK(orrery(asked + "10.5s").out.find("nothing is left to explain") != std::string::npos);
}

TEST_CASE("simulate --measured answers in text and JSON, and refuses what is no time") {
  const std::string question = "simulate llama3-8b-8-h100 ";
  const Ran text = orrery(question + "--measured 3s");
  CHECK(text.out.find("What would explain the measured step") != std::string::npos);
  const Json json = parsed(orrery(question + "--measured 3s --json").out);
  CHECK(json["measured"]["step_time_s"] == 3.0);
  CHECK(json["measured"]["explanations"].is_array());
  for (const char* wrong : {"0s", "-1s", "fast"}) {
    const Ran refused = orrery(question + "--measured " + wrong);
    CHECK(refused.exit_code == 2);
    CHECK(refused.error.find("--measured: expected a step time such as") != std::string::npos);
  }
}

}  // namespace orrery::scenarios
