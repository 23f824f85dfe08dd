// A prediction whose collectives and transfers share links: what contends and what does not.

#include <catch2/catch.hpp>

#include <numeric>

#include "models/evaluation/replay.hpp"
#include "sim/errors.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

constexpr const char* plan = "tensor=8,pipeline=4,data=8,micro_batch=1,global_batch=64";

Question asked(const std::string& how = plan) {
  Question question = models::question("gpt3-175b", "dgx-a100-80gb x 32", how);
  question.network.mode = NetworkMode::events;
  question.cluster.fabric.nodes_per_leaf = 4;
  return question;
}

/// The step, by its breakdown too, and every class's queues by a replay of its list.
Time step_of(const Question& question) {
  const Prediction found = predict(question);
  CHECK(std::accumulate(found.breakdown.begin(), found.breakdown.end(), Time{}) == found.step);
  for (std::uint32_t c = 0; c < found.program->classes.size(); ++c) {
    QueueTimes last;
    const auto record = [&](const InstructionRecord& each) { last = queue_times(each.after); };
    replay(found.priced, found.times, c, {.instruction = record, .operation = {}});
    CHECK(last == found.times.ranks[c]);
  }
  return found.step;
}

Perturbation perturbation(PerturbedPart kind, const char* at, double rate) {
  return {
      .kind = kind, .at = at, .rate = rate, .from = {}, .to = {}, .pointer = "/perturbations/0"};
}

TEST_CASE("Static times stay the answer until something asks for events") {
  Question question = asked();
  question.network.mode = NetworkMode::automatic;
  const Prediction found = predict(question);
  CHECK(found.network.evaluation == "static");
  question.network.order.scattered = 1;
  CHECK(predict(question).network.evaluation == "events");
}

TEST_CASE("Where pipeline and data parallelism share NICs a step contends for them") {
  const Prediction found = predict(asked());
  CHECK(found.network.evaluation == "events");
  CHECK(found.network.contention > Time{});
  CHECK(!found.network.links.empty());
  CHECK(!found.network.losses.empty());
  CHECK(found.network.contention * 20 < found.step);
}

TEST_CASE("One axis alone cannot fill a link of full bisection: maps say what events would") {
  Question question = asked("tensor=8,data=32,micro_batch=1,global_batch=64,zero=1");
  question.cluster.fabric.routing = hardware::Routing::spray;
  CHECK(predict(question).network.evaluation == "maps");
}

TEST_CASE("Sprayed over full bisection, scattered nodes step as contiguous ones do") {
  Question question = asked();
  question.cluster.fabric.routing = hardware::Routing::spray;
  const Time contiguous = step_of(question);
  question.network.order.scattered = 7;
  CHECK(step_of(question) == contiguous);
}

TEST_CASE("Scattered nodes lose more under oversubscription than contiguous ones") {
  Question question = asked();
  question.cluster.fabric.oversubscription = 4;
  const Time contiguous = step_of(question);
  question.network.order.scattered = 7;
  CHECK(step_of(question) > contiguous);
}

TEST_CASE("A slow node, GPU, NIC, link or switch makes a step longer, and replays") {
  const Time usual = step_of(asked());
  const auto with = [](Perturbation each) {
    Question question = asked();
    question.network.perturbations.push_back(std::move(each));
    return step_of(question);
  };
  CHECK(with(perturbation(PerturbedPart::node, "node3", 0.8)) > usual);
  CHECK(with(perturbation(PerturbedPart::gpu, "node3/gpu5", 0.8)) > usual);
  CHECK(with(perturbation(PerturbedPart::nic, "node3/nic1", 0.1)) > usual);
  CHECK(with(perturbation(PerturbedPart::packet_switch, "rail1/leaf1", 0.1)) > usual);
  CHECK(with(perturbation(PerturbedPart::gpu, "node3/gpu5", 1)) == usual);

  // Slow for a while costs less than slow for all of the step.
  Perturbation passing = perturbation(PerturbedPart::nic, "node3/nic1", 0.1);
  passing.from = 10_ms;
  passing.to = 11_ms;
  const Time shortly = with(passing);
  CHECK(shortly >= usual);
  CHECK(shortly < with(perturbation(PerturbedPart::nic, "node3/nic1", 0.1)));
}

TEST_CASE("What is asked of a network must exist") {
  const auto refused = [](Perturbation each) {
    Question question = asked();
    question.network.perturbations.push_back(std::move(each));
    try {
      predict(question);
    } catch (const InputError& error) {
      return std::string{error.what()};
    }
    return std::string{"nothing"};
  };
  CHECK(refused(perturbation(PerturbedPart::node, "node32", 0.5)) ==
        "/perturbations/0/at: expected a node from 0 to 31, or node0 to node31, found 'node32'");
  CHECK(refused(perturbation(PerturbedPart::link, "leaf9 to leaf8", 0.5)).substr(0, 36) ==
        "/perturbations/0/at: expected a link");
  Question question = asked();
  question.network.order.nodes = {0, 1, 1};
  CHECK_THROWS_WITH(predict(question), "/placement: 3 nodes for a plan that needs 32");
  question.network.order.nodes.assign(32, 5);
  CHECK_THROWS_WITH(predict(question), "/placement/1: node 5 is taken twice");
  question.network.mode = NetworkMode::fixed;
  CHECK_THROWS_WITH(predict(question),
                    "/network: static times know no placement and no perturbation");
}

}  // namespace
}  // namespace orrery::models
