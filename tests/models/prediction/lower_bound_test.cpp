// The step if nothing shared a link is never longer than a step with traffic.

#include <catch2/catch.hpp>

#include <random>

#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// A question with random degrees, placement and oversubscription.
Question random_question(std::uint64_t seed) {
  std::mt19937_64 random{seed};
  const auto one_of = [&](std::vector<std::string> all) { return all[random() % all.size()]; };
  const int nodes = 4 << random() % 2;  // 4, 8
  std::string plan = "micro_batch=1,seq_len=1024,global_batch=" + one_of({"64", "128"});
  plan += ",tensor=" + one_of({"1", "2", "8", "8"}) + ",zero=" + one_of({"0", "1"});
  const std::string stages = one_of({"1", "2", "4"});
  plan += ",pipeline=" + stages;
  if (stages != "1" && random() % 2 == 0) plan += ",virtual_stages=2";
  plan += ",overlap=" + one_of({"true", "false"});
  const std::string nodes_text = std::to_string(nodes);
  Question asked =
      question("llama3-8b", one_of({"dgx-a100-80gb x ", "hgx-a100-80gb x "}) + nodes_text, plan,
               one_of({"megatron-lm", "nemo"}));
  hardware::ClusterFabric& fabric = asked.cluster.fabric;
  fabric.nodes_per_leaf = 1 << random() % 3;
  fabric.oversubscription = 1 << random() % 5;
  fabric.tree.levels = 2;
  if (random() % 3 == 0) fabric.routing = hardware::Routing::spray;
  if (random() % 2 == 0) asked.network.order.scattered = random() % 1000;
  if (random() % 4 == 0) {
    asked.network.perturbations.push_back({.kind = PerturbedPart::nic,
                                           .at = "node1/nic0",
                                           .rate = 0.5,
                                           .from = {},
                                           .to = {},
                                           .pointer = "/perturbations/0"});
  }
  return asked;
}

TEST_CASE("No step with traffic is shorter than one in which nothing shares a link") {
  int contended = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Question asked = random_question(seed);
    asked.network.mode = NetworkMode::events;
    const Prediction traffic = predict(asked);
    INFO("seed " << seed << ", " << traffic.network.why);
    CHECK(traffic.network.lower_bound <= traffic.step);
    contended += traffic.network.lower_bound < traffic.step ? 1 : 0;
    asked.network = {};
    const Prediction fixed = predict(asked);
    CHECK(fixed.network.lower_bound <= fixed.step);
    // Placements and slow NICs do not change what a transfer alone takes.
    CHECK(fixed.network.lower_bound == traffic.network.lower_bound);
  }
  CHECK(contended > 20);
}

TEST_CASE("A static step may be longer than one with traffic, but its lower bound is not") {
  // Stage transfers, charged as if all stages sent at once, are not all under way at once.
  Question asked = question("gpt3-175b", "dgx-a100-80gb x 32",
                            "tensor=8,pipeline=8,data=4,micro_batch=1,global_batch=64");
  asked.cluster.fabric.oversubscription = 16;
  const Prediction fixed = predict(asked);
  asked.network.mode = NetworkMode::events;
  const Prediction traffic = predict(asked);
  CHECK(traffic.step < fixed.step);
  CHECK(fixed.network.lower_bound <= traffic.step);
}

}  // namespace
}  // namespace orrery::models
