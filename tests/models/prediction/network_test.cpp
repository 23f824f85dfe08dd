// A prediction whose collectives and transfers share links: what contends and what does not.

#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <numeric>

#include "models/evaluation/replay.hpp"
#include "models/evaluation/step_times.hpp"
#include "models/network/fabric/fabric_graph.hpp"
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

/// A second job of the same model and of so many nodes.
JobRequest second_job(std::vector<std::int64_t> nodes) {
  auto other = std::make_shared<Question>(
      models::question("gpt3-175b", "dgx-a100-80gb x " + std::to_string(nodes.size()),
                       "tensor=8,pipeline=4,micro_batch=1,global_batch=32"));
  other->cluster = hardware::named_cluster("dgx-a100-80gb x 64");
  return {.name = "second",
          .question = std::move(other),
          .nodes = std::move(nodes),
          .pointer = "/jobs/0"};
}

/// Every second of 64 nodes, four under a leaf switch, has fewer links up than down.
Question on_every_second_node() {
  Question question = asked();
  question.cluster.nodes = 64;
  question.cluster.fabric.oversubscription = 4;
  for (std::int64_t i = 0; i < 32; ++i) question.network.order.nodes.push_back(2 * i);
  return question;
}

TEST_CASE("Another job that shares links makes a step longer, and says what it cost and lost") {
  Question question = on_every_second_node();
  const Time alone = step_of(question);
  std::vector<std::int64_t> between;
  for (std::int64_t i = 0; i < 16; ++i) between.push_back(2 * i + 1);
  question.network.jobs.push_back(second_job(between));
  const Prediction found = predict(question);
  CHECK(found.step > alone);
  CHECK(found.network.from_jobs == found.step - alone);
  REQUIRE(found.network.jobs.size() == 1);
  const JobAnswer& job = found.network.jobs[0];
  CHECK(job.shares_links);
  REQUIRE(job.step);
  CHECK(*job.step > job.alone);
  const auto to_it = [](const TrafficLoss& loss) {
    return std::any_of(loss.to.begin(), loss.to.end(), [](const auto& to) {
      return to.first.find("of /jobs/0") != std::string::npos && to.second > 0;
    });
  };
  CHECK(std::any_of(found.network.losses.begin(), found.network.losses.end(), to_it));
  CHECK(step_of(question) == found.step);
}

TEST_CASE("A job on nodes and links of its own changes no picosecond") {
  Question question = asked();
  question.cluster.nodes = 64;
  question.network.order.nodes.resize(32);
  std::iota(question.network.order.nodes.begin(), question.network.order.nodes.end(), 0);
  const Time alone = step_of(question);
  question.network.jobs.push_back(second_job({40, 41, 42, 43}));
  const Prediction found = predict(question);
  CHECK(found.step == alone);
  CHECK(found.network.from_jobs == Time{});
  CHECK(!found.network.jobs.at(0).shares_links);
  // Without a list ours fills the nodes that are left, the same ones.
  question.network.order.nodes.clear();
  CHECK(predict(question).step == alone);
}

TEST_CASE("A job takes its nodes, and ours needs those that are left") {
  Question question = asked();
  question.network.jobs.push_back(second_job({0, 1, 2, 3}));
  CHECK_THROWS_WITH(predict(question),
                    "/plan/data: tensor 8 x pipeline 4 x data 8 is 256 GPUs, the cluster has 224");
  question.cluster.nodes = 36;
  CHECK(predict(question).step > Time{});
}

TEST_CASE("Jobs are on different nodes") {
  const auto refused = [](std::vector<std::int64_t> nodes) {
    Question question = asked();
    question.cluster.nodes = 64;
    question.network.order.nodes.resize(32);
    std::iota(question.network.order.nodes.begin(), question.network.order.nodes.end(), 0);
    question.network.jobs.push_back(second_job({60, 61, 62, 63}));
    question.network.jobs.push_back(second_job(std::move(nodes)));
    question.network.jobs.back().pointer = "/jobs/1";
    try {
      predict(question);
    } catch (const InputError& error) {
      return std::string{error.what()};
    }
    return std::string{"nothing"};
  };
  CHECK(refused({40, 41, 31, 42}) == "/jobs/1/nodes/2: node 31 is already used by this job");
  CHECK(refused({40, 41, 42, 61}) == "/jobs/1/nodes/3: node 61 is already used by /jobs/0");
  CHECK(refused({40, 40, 41, 42}) == "/jobs/1/nodes/1: node 40 is already used by /jobs/1");
  CHECK(refused({40, 41, 42, 64}) == "/jobs/1/nodes/3: expected a node from 0 to 63, found 64");
}

TEST_CASE("Steps of another job that are too short next to ours are refused") {
  Question question = asked();
  question.cluster.nodes = 64;
  JobRequest tiny = second_job({40});
  auto other = std::make_shared<Question>(
      models::question("gpt2", "dgx-a100-80gb x 1", "micro_batch=1,global_batch=8,seq_len=128"));
  other->model.layers.resize(1);
  other->cluster = question.cluster;
  tiny.question = other;
  question.plan.batch.global = 65536;
  question.network.jobs.push_back(tiny);
  try {
    predict(question);
    CHECK(false);
  } catch (const InputError& error) {
    CHECK(std::string{error.what()}.find("/jobs/0: a step of it takes") == 0);
  }
}

/// Dense axes and the pipeline as named, experts' behind them.
AxisOrder counted_by(std::vector<MeshAxis> axes) {
  using enum MeshAxis;
  axes.insert(axes.end(), {expert_tensor, expert, expert_data});
  return AxisOrder{std::move(axes)};
}

TEST_CASE("The order of axes says which ranks share a node") {
  Question question = asked();
  const Time usual = step_of(question);
  using enum MeshAxis;
  question.network.order.axes = AxisOrder{{tensor, expert_tensor, context_heads, context, expert,
                                           data, replica, expert_data, pipeline}};
  CHECK(step_of(question) == usual);
  // Replicas of a stage 32 ranks apart instead of 8, and next stages on the next nodes.
  question.network.order.axes =
      counted_by({tensor, context_heads, context, pipeline, data, replica});
  const Time stages_first = step_of(question);
  CHECK(stages_first != usual);
  // Tensor groups over eight nodes: their traffic leaves each node by its NICs.
  question.network.mode = NetworkMode::fixed;
  question.network.order.axes =
      counted_by({data, context_heads, context, replica, tensor, pipeline});
  CHECK(predict(question).step > usual);
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
  CHECK_THROWS_WITH(predict(question), "/placement: 3 nodes are listed, and the plan needs 32");
  question.network.order.nodes.assign(32, 5);
  CHECK_THROWS_WITH(predict(question), "/placement/1: node 5 is listed twice");
  question.network.mode = NetworkMode::fixed;
  CHECK_THROWS_WITH(predict(question),
                    "/network: --network static cannot evaluate a placement, perturbations, "
                    "phases or other jobs; use auto or events");
}

// Ports are nodes times 8 NICs. On rails every NIC k is on switch k: a message between them must
// cross, unless NVLink takes it to the rail first.
TEST_CASE("With PXN a message leaves by the NIC of its destination's rail") {
  Question question = models::question("gpt3-175b", "dgx-h100 x 32", plan);
  const Prediction found = predict(question);
  const auto links = [&](bool pxn, std::size_t from, std::size_t to) {
    question.cluster.fabric.pxn = pxn;
    const auto fabric = std::make_shared<const FabricGraph>(question.cluster);
    Route route;
    site_of(question, fabric).route(from, to, 0, route);
    return std::vector<LinkId>(route.begin(), route.end());
  };
  CHECK(links(true, 2, 8 + 5) == links(true, 5, 8 + 5));
  CHECK(links(false, 2, 8 + 5) != links(false, 5, 8 + 5));
  CHECK(links(false, 2, 8 + 5).size() > links(true, 2, 8 + 5).size());
}

}  // namespace
}  // namespace orrery::models
