// Several evaluations of one step with random launch delays, equal ones for every variant.

#include <catch2/catch.hpp>

#include <cmath>

#include "models/evaluation/traffic/launch_delays.hpp"
#include "sim/mean_and_spread.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// Pipeline and data-parallel traffic on the same NICs.
Question in_phases(bool overlap) {
  Question question = models::question(
      "gpt-22b", "dgx-a100-80gb x 8",
      std::string{"tensor=8,pipeline=4,virtual_stages=3,data=2,micro_batch=1,global_batch=32,"} +
          (overlap ? "overlap=true" : "overlap=false"));
  question.network.mode = NetworkMode::events;
  question.network.phases.count = 32;
  question.cluster.fabric.nodes_per_leaf = 2;
  return question;
}

TEST_CASE("Launch delays are exponential, repeatable, and differ by seed, sample and source") {
  const LaunchDelays delays{.seed = 1, .sample = 2, .mean = 49_us};
  std::vector<double> drawn;
  for (std::uint64_t k = 0; k < 20'000; ++k) {
    drawn.push_back(ratio(delays.of({0, false, 3, 0}, k), 49_us));
  }
  const MeanAndSpread found = mean_and_spread(drawn);
  CHECK(std::abs(found.mean - 1) < 4 * found.error);
  CHECK(found.deviation == Approx(1).epsilon(0.05));  // of an exponential: as its mean
  CHECK(delays.of({0, false, 3, 0}, 7) == delays.of({0, false, 3, 0}, 7));
  CHECK(delays.of({0, false, 3, 0}, 7) != delays.of({0, true, 3, 0}, 7));
  CHECK(delays.of({0, false, 3, 0}, 7) != delays.of({1, false, 3, 0}, 7));
  CHECK(delays.of({0, false, 3, 0}, 7) != LaunchDelays{2, 2, 49_us}.of({0, false, 3, 0}, 7));
  CHECK(delays.of({0, false, 3, 0}, 7) != LaunchDelays{1, 3, 49_us}.of({0, false, 3, 0}, 7));
  CHECK(delays.of({0, false, 3, 0}, 7) != delays.of({0, false, 3, 1}, 7));
  CHECK(LaunchDelays{}.of({0, false, 3, 0}, 7) == Time{});
}

TEST_CASE("A slower part makes no mean step shorter by more than two standard errors") {
  for (const bool overlap : {false, true}) {
    const Prediction usual = predict(in_phases(overlap));
    const std::vector<Time>& steps = usual.network.phases.steps;
    REQUIRE(steps.size() == 32);
    for (const char* nic : {"node0/nic0", "node3/nic2", "node7/nic5"}) {
      Question slow = in_phases(overlap);
      slow.network.perturbations.push_back({.kind = PerturbedPart::nic,
                                            .at = nic,
                                            .rate = 0.5,
                                            .from = {},
                                            .to = {},
                                            .pointer = "/perturbations/0"});
      const Prediction slower = predict(slow);
      std::vector<double> longer;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        longer.push_back(seconds(slower.network.phases.steps[i] - steps[i]));
      }
      const MeanAndSpread difference = mean_and_spread(longer);
      INFO(nic << (overlap ? ", overlap: " : ": ") << difference.mean << " +- "
               << difference.error);
      CHECK(difference.mean > -2 * difference.error);
      CHECK(slower.network.lower_bound <= slower.step);
    }
  }
}

TEST_CASE("Phases are the same in every run, and the step is that nearest to their mean") {
  const Prediction one = predict(in_phases(true)), other = predict(in_phases(true));
  const PhasesAnswer& phases = one.network.phases;
  CHECK(phases.steps == other.network.phases.steps);
  CHECK(one.step == phases.steps[phases.representative]);
  CHECK(one.network.contention == phases.contention[phases.representative]);
  const double mean = mean_and_spread(phases.steps).mean;
  for (const Time step : phases.steps) {
    CHECK(std::abs(seconds(step) - mean) >= std::abs(seconds(one.step) - mean));
    CHECK(step >= one.network.lower_bound);
  }
  Question seeded = in_phases(true);
  seeded.network.phases.seed = 2;
  CHECK(predict(seeded).network.phases.steps != phases.steps);
}

TEST_CASE("Where no link can be filled, delays cost what they do alone") {
  Question question = models::question("gpt-22b", "dgx-a100-80gb x 4",
                                       "tensor=8,data=4,micro_batch=1,global_batch=32,zero=1");
  question.cluster.fabric.routing = hardware::Routing::spray;
  question.network.phases.count = 4;
  const Prediction found = predict(question);
  for (const Time contention : found.network.phases.contention) CHECK(contention == Time{});
  CHECK(found.step > found.network.lower_bound);
}

}  // namespace
}  // namespace orrery::models
