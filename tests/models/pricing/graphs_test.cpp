// What CUDA graphs are worth: launches that the host is spared, and nothing else.

#include <catch2/catch.hpp>

#include <algorithm>

#include "models/plan/conflicts.hpp"
#include "models/pricing/price.hpp"
#include "models/program/graph_segments.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

const std::string assumed =
    "/software/host/graph_launch: not stated; 2.5 us and 1 ns per operation assumed, NVIDIA's "
    "figures for graphs without branches (CUDA 12.6)";

Question asked(const std::string& plan, Time launch, Time graph_launch) {
  Question question_ = question("gpt2", "dgx-a100-80gb", plan, "orrery-cuda");
  HostCosts& host = question_.software.host;
  host.forward_launch = host.backward_launch = host.communication_launch = launch;
  host.graph_launch = graph_launch;
  return question_;
}

Time step_of(Question question_, bool graphs) {
  question_.plan.kernels.graphs = graphs;
  return predict(question_).step;
}

/// Operations that one micro-batch of 12 layers launches in blocks, and their graph_segments.
struct Launches {
  std::int64_t operations = 0, graph_segments = 0;
};
Launches launches_of(Question question_) {
  question_.plan.kernels.graphs = true;
  const Program program = lower(question_);
  Launches sum;
  for (std::size_t b = 0; b < first_step_block; ++b) {
    const std::int64_t times = b == layer_forward || b == layer_backward ? 12 : 1;
    for (const Operation& op : program.blocks[b].operations) {
      if (op.queue == Lane::compute) sum.operations += times;
    }
    sum.graph_segments += times * static_cast<std::int64_t>(graph_segments(program, b).size());
  }
  return sum;
}

TEST_CASE(
    "Where the host holds every kernel back, a step is shorter by the launches it is spared") {
  // A launch takes 1 ms and kernels a few microseconds: the queues are idle at every launch, and a
  // step ends one kernel after the last of them. 3 micro-batches, each of n operations in s
  // segments: 3 (n - s) launches less.
  const Question one = asked("data=8,micro_batch=1,global_batch=24,seq_len=64", 1_ms, 1_ms);
  const Launches in_one = launches_of(one);
  CHECK(in_one.graph_segments == 2 * (12 + 2));  // forward and backward: layers, embedding, head
  CHECK(in_one.operations > 10 * in_one.graph_segments);
  CHECK(step_of(one, false) - step_of(one, true) ==
        1_ms * (3 * (in_one.operations - in_one.graph_segments)));
}

TEST_CASE("Where kernels are long the host is far ahead, and graphs change nothing") {
  const Question one = asked("data=8,micro_batch=8,global_batch=128,seq_len=1024", 100_ns, 100_ns);
  CHECK(step_of(one, true) == step_of(one, false));
  const Question two = asked("tensor=2,micro_batch=8,global_batch=64,seq_len=1024", 100_ns, 100_ns);
  CHECK(step_of(two, true) == step_of(two, false));
}

TEST_CASE("A graph costs what the stack says, else as published, which is an assumption") {
  Software software = plain_software();
  CHECK(graph_launch_time(1, software) == 2501_ns);
  CHECK(graph_launch_time(20, software) == 2520_ns);
  software.host.graph_launch = 7_us;
  CHECK(graph_launch_time(20, software) == 7_us);

  const auto assumes = [](const Question& question_) {
    const std::vector<std::string> all = predict(question_).assumptions;
    return std::count(all.begin(), all.end(), assumed);
  };
  Question plain = question("gpt2", "dgx-a100-80gb", "data=8", "orrery-cuda");
  plain.software.host.graph_launch.reset();
  CHECK(assumes(plain) == 0);
  plain.plan.kernels.graphs = true;
  CHECK(assumes(plain) == 1);
  plain.software.host.graph_launch = 3_us;
  CHECK(assumes(plain) == 0);
}

TEST_CASE("Collectives are launched by themselves, and steps' blocks operation by operation") {
  Question two = asked("tensor=2,global_batch=4", 5_us, 3_us);
  two.plan.kernels.graphs = true;
  const Program program = lower(two);
  std::vector<std::string> assumptions;
  const PricedProgram priced = price_program(program, two.cluster, two.software, assumptions);
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    Time host{};
    for (const PricedOperation& each : priced.blocks[b]) host = host + each.launch;
    const std::vector<Operation>& operations = program.blocks[b].operations;
    const auto graphs = static_cast<std::int64_t>(graph_segments(program, b).size());
    const std::int64_t collectives =
        std::count_if(operations.begin(), operations.end(),
                      [](const Operation& op) { return op.kind == OpKind::collective; });
    const auto all = static_cast<std::int64_t>(operations.size());
    CHECK(host == (b < first_step_block ? 3_us * graphs + 5_us * collectives : 5_us * all));
  }
}

TEST_CASE("A host that is the processor's own has no graphs to launch") {
  Question cpu = question("gpt2", "dgx-a100-80gb", "data=8", "orrery-cuda");
  cpu.software.name = "slow";
  cpu.software.host.synchronous = true;
  CHECK(conflicts(cpu).empty());
  cpu.plan.kernels.graphs = true;
  const std::vector<Conflict> found = conflicts(cpu);
  REQUIRE(found.size() == 1);
  CHECK(found[0].pointer == "/plan/cuda_graphs");
  CHECK(found[0].problem ==
        "cuda_graphs needs asynchronous launches; the launches of slow are synchronous");
}

}  // namespace
}  // namespace orrery::models
