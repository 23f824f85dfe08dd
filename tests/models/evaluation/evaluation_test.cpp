// Steps whose times can be worked out by hand, by all three evaluations.

#include <catch2/catch.hpp>

#include <thread>
#include <vector>

#include "sim/errors.hpp"
#include "tests/models/evaluation/operations.hpp"
#include "tests/models/evaluation/random_program.hpp"

namespace orrery::models {
namespace {

/// What all evaluations say.
StepTimes evaluate(const PricedProgram& priced) {
  const StepTimes times = evaluate_events(priced);
  CHECK(difference(times, evaluate_operations(priced)) == "");
  CHECK(difference(times, evaluate_maps(priced)) == "");
  return times;
}

void refuse(const PricedProgram& priced, const char* message) {
  CHECK_THROWS_WITH(evaluate_maps(priced), message);
  CHECK_THROWS_WITH(evaluate_operations(priced), message);
  CHECK_THROWS_WITH(evaluate_events(priced), message);
  CHECK_THROWS_AS(evaluate_maps(priced), ContractError);
  CHECK_THROWS_AS(evaluate_operations(priced), ContractError);
  CHECK_THROWS_AS(evaluate_events(priced), ContractError);
}

/// One stage, one micro-batch: three kernels forward and none backward.
Case three_kernels(Time launch, Time duration) {
  Case made = simple_pipeline("gpipe", {1, 1, 1}, duration, Time{});
  std::vector<Operation>& kernels = made.program->blocks[0].operations;
  kernels.resize(3, kernels.front());
  made.program->blocks[1].operations.clear();
  made.priced.blocks = {std::vector<PricedOperation>(3, {launch, duration}), {}};
  return made;
}

TEST_CASE("One forward and one backward at a time leaves a bubble of p - 1 of each") {
  // Two stages, four micro-batches, 10 us each way:
  //   step = (p-1)(f+b) + m(f+b) = 20 us + 80 us, of which a stage computes 80 us.
  const Case made = simple_pipeline("1f1b", {2, 1, 4}, 10_us, 10_us);
  CHECK(evaluate(made.priced).step == 100_us);
  CHECK(evaluate(made.priced).ranks[0][Lane::compute] == 100_us);
  CHECK(evaluate(made.priced).ranks[1][Lane::compute] ==
        90_us);  // 10 us of its bubble are at each end

  // The same law with f = 3 us, b = 7 us and up to five stages.
  for (std::int64_t p = 1; p <= 5; ++p) {
    for (std::int64_t m = p; m <= 8; ++m) {
      const Case other = simple_pipeline("1f1b", {p, 1, m}, 3_us, 7_us);
      CHECK(evaluate(other.priced).step == (p - 1) * 10_us + m * 10_us);
    }
  }
}

TEST_CASE("GPipe has the bubble of one forward and one backward at a time") {
  // Forwards end at (p-1+m)f on the last stage, backwards as long again.
  const Case made = simple_pipeline("gpipe", {4, 1, 6}, 3_us, 7_us);
  CHECK(evaluate(made.priced).step == 3 * 10_us + 6 * 10_us);
}

TEST_CASE("Without pipelining every micro-batch crosses all stages before the next") {
  // m p (f + b)
  const Case made = simple_pipeline("naive", {4, 1, 6}, 3_us, 7_us);
  CHECK(evaluate(made.priced).step == 6 * 4 * 10_us);
}

TEST_CASE("Virtual stages divide the bubble by their number") {
  // Four stages of two chunks of f = 2 us, b = 4 us: a stage's whole pass is 4 + 8 us.
  //   step = m(f+b) + (p-1)(f+b)/v with f, b of the whole stage = 8 x 12 + 3 x 6 us
  const Case made = simple_pipeline("interleaved-1f1b", {4, 2, 8}, 2_us, 4_us);
  CHECK(evaluate(made.priced).step == 114_us);
}

TEST_CASE("A transfer is waited for once down and once up") {
  // One micro-batch on two stages, 1 us each way: f + 1 + f + b + 1 + b.
  Case made = simple_pipeline("1f1b", {2, 1, 1}, 10_us, 20_us);
  made.priced.channels.assign(4, 1_us);
  const StepTimes times = evaluate(made.priced);
  CHECK(times.step == 62_us);
  CHECK(times.transfers[forward_channel(0)] == std::vector<Time>{11_us});
  CHECK(times.transfers[backward_channel(1)] == std::vector<Time>{42_us});
}

TEST_CASE("Transfers of a channel go one after the other") {
  // GPipe, three micro-batches: sent at 1, 2 and 3 us, 10 us each on the wire.
  Case made = simple_pipeline("gpipe", {2, 1, 3}, 1_us, 1_us);
  made.priced.channels.assign(4, 10_us);
  const StepTimes times = evaluate(made.priced);
  CHECK(times.transfers[forward_channel(0)] == std::vector<Time>{11_us, 21_us, 31_us});
}

TEST_CASE("Short kernels wait for the host, long ones for each other") {
  // Launched at 5, 10 and 15 us; the last runs 1 us.
  CHECK(evaluate(three_kernels(5_us, 1_us).priced).step == 16_us);
  // The first begins at 1 us and then the queue is never idle.
  CHECK(evaluate(three_kernels(1_us, 5_us).priced).step == 16_us);
  const StepTimes times = evaluate(three_kernels(1_us, 5_us).priced);
  CHECK(times.ranks[0][Lane::host] == 3_us);
  CHECK(times.ranks[0][Lane::compute] == 16_us);
}

TEST_CASE("A host whose launches return at the end pays for launch and kernel in turn") {
  // 3 (1 + 5) us, and the host is there until the end.
  Case made = three_kernels(1_us, 5_us);
  made.priced.synchronous = true;
  const StepTimes times = evaluate(made.priced);
  CHECK(times.step == 18_us);
  CHECK(times.ranks[0][Lane::host] == 18_us);
}

TEST_CASE("A host that waits for one kernel launches the next one later") {
  // Launched at 1 us, ends at 6; the others are launched at 7 and 8: 7 + 5 + 5.
  Case made = three_kernels(1_us, 5_us);
  made.program->blocks[0].operations[0].host_waits = true;
  CHECK(evaluate(made.priced).step == 17_us);
}

TEST_CASE("The step begins with what the host does before its first launch") {
  Case made = three_kernels(1_us, 5_us);
  made.priced.step_launch = 100_us;
  CHECK(evaluate(made.priced).step == 116_us);
}

TEST_CASE("A host that waits for what it receives launches late") {
  // Two stages, one micro-batch; kernels of 10 us are launched in 2 us, transfers in 1 us and take
  // 3 us. Stage 0: forward from 2 to 12, arrives at 15. Stage 1 has launched its forward (at 3):
  // it runs to 25, backward to 35, which arrives at 38; backward there to 48.
  Case made = simple_pipeline("gpipe", {2, 1, 1}, 10_us, 10_us);
  made.priced.blocks = {{{2_us, 10_us}}, {{2_us, 10_us}}};
  made.priced.channels.assign(4, 3_us);
  made.priced.transfer_launch = 1_us;
  CHECK(evaluate(made.priced).step == 48_us);

  // Blocking: both stages launch 2 us after the arrival: forward 17 to 27, backward (launched at
  // 19) to 37, arrives at 40, backward from 42 to 52.
  made.priced.blocking_receive = true;
  const StepTimes times = evaluate(made.priced);
  CHECK(times.step == 52_us);
  CHECK(times.ranks[0][Lane::host] == 42_us);
}

TEST_CASE("A host inside its communication goes on when that has ended") {
  // The same as blocking receives where there is nothing else to wait for.
  Case made = simple_pipeline("gpipe", {2, 1, 1}, 10_us, 10_us);
  made.priced.blocks = {{{2_us, 10_us}}, {{2_us, 10_us}}};
  made.priced.channels.assign(4, 3_us);
  made.priced.transfer_launch = 1_us;
  made.priced.blocking_communication = true;
  CHECK(evaluate(made.priced).step == 52_us);

  // Backward ends at 52, a reduction of 5 us at 57: the host is there until then.
  append_joint(made, Opcode::reduce_gradient, {.name = "gradients", .classes = {0}}, 1_us, 5_us);
  CHECK(evaluate(made.priced).ranks[0][Lane::host] == 57_us);
}

TEST_CASE("A joint collective begins when its last member is ready") {
  // Forwards end at 10 and 20 us, backwards at 40 us on stage 1 and at 60 us on stage 0. Both
  // hosts, long since there, wait until 65 us.
  Case made = simple_pipeline("gpipe", {2, 1, 1}, 10_us, 20_us);
  append_joint(made, Opcode::norm, {.name = "norm", .classes = {0, 1}, .host_waits = true}, 1_us,
               5_us);
  const StepTimes times = evaluate(made.priced);
  CHECK(times.collective_starts == std::vector<Time>{60_us});
  CHECK(times.ranks[0][Lane::host] == 65_us);
  CHECK(times.ranks[1][Lane::host] == 65_us);
  CHECK(times.ranks[1][Lane::compute] == 40_us);
  CHECK(times.ranks[1][Lane::data] == 65_us);
}

TEST_CASE("Collectives of one class wait for each other on its queue, not for other classes") {
  // Stage 1 computes until 40 us: its two run from 40 to 47 and to 49 us.
  Case made = simple_pipeline("gpipe", {2, 1, 1}, 10_us, 20_us);
  append_joint(made, Opcode::reduce_gradient, {.name = "a", .classes = {1}}, 0_us, 7_us);
  append_joint(made, Opcode::reduce_gradient, {.name = "b", .classes = {1}}, 0_us, 2_us);
  const StepTimes times = evaluate(made.priced);
  CHECK(times.collective_starts == std::vector<Time>{40_us, 47_us});
  CHECK(times.ranks[1][Lane::data] == 49_us);
}

TEST_CASE("What is hidden of a collective keeps its queue busy before it starts") {
  // 8 us each, of which 6 us lead. Backward ends at 30 us, when the wire was free for long: the
  // first ends at 32. The second's 6 us begin then: 38 to 40.
  Case made = simple_pipeline("gpipe", {1, 1, 1}, 10_us, 20_us);
  for (const char* name : {"a", "b"}) {
    append_joint(made, Opcode::reduce_gradient, {.name = name, .classes = {0}}, 0_us, 2_us);
    made.priced.collectives.back().lead = 6_us;
  }
  CHECK(evaluate(made.priced).collective_starts == std::vector<Time>{30_us, 38_us});
  CHECK(evaluate(made.priced).step == 40_us);
  // With nothing to overlap with, both take all of their 8 us: 16 us after 0.
  made.priced.blocks = {{{0_us, 1_us}}, {{0_us, 2_us}}};
  CHECK(evaluate(made.priced).collective_starts == std::vector<Time>{6_us, 14_us});
  CHECK(evaluate(made.priced).step == 16_us);
}

TEST_CASE("What the step before left on its queue comes first") {
  // The gather of the step before ends at 5 us; a reduction of 2 us, ready at 3, waits for it.
  Case made = simple_pipeline("gpipe", {1, 1, 1}, 1_us, 2_us);
  append_joint(made, Opcode::reduce_gradient, {.name = "a", .classes = {0}}, 0_us, 2_us);
  made.priced.carried = {5_us};
  CHECK(evaluate(made.priced).collective_starts == std::vector<Time>{5_us});
  CHECK(evaluate(made.priced).step == 7_us);
}

TEST_CASE("What is hidden after a collective delays the next one on its queue, and no kernel") {
  // Collective (1 us, trail 6 us), kernel of 2 us that needs it, collective (1 us, lead 3 us) that
  // needs the kernel: 0-1, 1-3, then not at 3 but when 6 + 3 us have passed on the wire: 10-11.
  Case made = simple_pipeline("gpipe", {1, 1, 1}, 0_us, 0_us);
  Block block = block_of("chain");
  block.operations.push_back(operation_on(Lane::tensor, {block_input}, false));
  block.operations.push_back(operation_on(Lane::compute, {0}, false));
  block.operations.push_back(operation_on(Lane::tensor, {1}, true));
  made.program->blocks[0] = block;
  made.priced.blocks[0] = {{0_us, 1_us, 0_us, 6_us}, {0_us, 2_us}, {0_us, 1_us, 3_us}};
  const StepTimes times = evaluate(made.priced);
  CHECK(times.ranks[0][Lane::tensor] == 11_us);
  CHECK(times.ranks[0][Lane::compute] == 3_us);
  made.priced.blocks[0][2].trail = 4_us;
  CHECK(evaluate(made.priced).ranks[0][Lane::tensor] == 15_us);
  CHECK(evaluate(made.priced).step == 15_us);
}

TEST_CASE("A step is no shorter than its bound") {
  Case made = simple_pipeline("gpipe", {1, 1, 1}, 1_us, 2_us);
  made.priced.bound.time = 2_us;
  CHECK(evaluate(made.priced).step == 3_us);
  made.priced.bound.time = 7_us;
  CHECK(evaluate(made.priced).step == 7_us);
  CHECK(evaluate(made.priced).scheduled() == 3_us);
}

TEST_CASE("An optimizer's input is there when its gradients are reduced") {
  // Backward ends at 3 us, the reduction at 13 us; the optimizer runs the forward block, 1 us.
  Case made = simple_pipeline("gpipe", {1, 1, 1}, 1_us, 2_us);
  append_joint(made, Opcode::reduce_gradient, {.name = "gradients", .classes = {0}}, 0_us, 10_us);
  Instruction optimizer;
  optimizer.op = Opcode::optimizer;
  optimizer.input = 2;
  made.program->classes[0].instructions.push_back(optimizer);  // after F B R
  CHECK(evaluate(made.priced).ranks[0][Lane::compute] == 14_us);
}

TEST_CASE("A layer's output is the next layer's input, however many there are") {
  // The block: a kernel of 4 us that needs the input, and a copy of 3 us that needs the kernel
  // and is the output. Two queues, but a chain: 5 x 7 us.
  Case made = simple_pipeline("gpipe", {1, 1, 1}, 0_us, 0_us);
  Block block = block_of("chain");
  block.operations.push_back(operation_on(Lane::compute, {block_input}, false));
  block.operations.push_back(operation_on(Lane::copy, {0}, true));
  made.program->blocks[0] = block;
  made.program->phases[0].invocations[0].count = 5;
  made.priced.blocks[0] = {{0_us, 4_us}, {0_us, 3_us}};
  CHECK(evaluate(made.priced).step == 35_us);
}

TEST_CASE("A schedule that waits in a circle is refused, naming who waits where") {
  // Stage 0 runs its backward before its forward: it waits for stage 1, which waits for it.
  Case made = simple_pipeline("1f1b", {2, 1, 1}, 10_us, 10_us);
  std::vector<Instruction>& list = made.program->classes[0].instructions;  // F send receive B
  list = {list[2], list[3], list[0], list[1]};
  list[1].input = 0;
  list[3].input = 2;
  refuse(made.priced,
         "the schedule cannot proceed: stage 0 waits at i0 receive from stage 1; "
         "stage 1 waits at i0 receive from stage 0");
}

TEST_CASE("Receives that swapped their places stop the stages that follow them") {
  // Stage 1 of three, one micro-batch: receive F send receive B send. With the receives swapped
  // it waits for the gradient of what it has not yet sent.
  Case made = simple_pipeline("1f1b", {3, 1, 1}, 10_us, 10_us);
  std::vector<Instruction>& list = made.program->classes[1].instructions;
  std::swap(list[0], list[3]);
  refuse(made.priced,
         "the schedule cannot proceed: stage 0 waits at i2 receive from stage 1; "
         "stage 1 waits at i0 receive from stage 2; stage 2 waits at i0 receive from stage 1");
}

TEST_CASE("A collective that a member never joins is refused") {
  Case made = simple_pipeline("1f1b", {2, 1, 1}, 10_us, 10_us);
  append_joint(made, Opcode::norm, {.name = "norm", .classes = {0, 1}}, 0_us, 5_us);
  made.program->classes[1].instructions.pop_back();
  refuse(made.priced, "the schedule cannot proceed: stage 0 waits at i4 norm");
}

TEST_CASE("Prices of another program are refused") {
  Case made = simple_pipeline("1f1b", {2, 1, 1}, 10_us, 10_us);
  made.priced.blocks[0].clear();
  CHECK_THROWS_WITH(evaluate_events(made.priced), "the prices are of another program");
}

TEST_CASE("The same program gives the same times again, and in two threads at once") {
  const Case made = random_program(7);
  const StepTimes once = evaluate(made.priced);
  CHECK(difference(evaluate(made.priced), once) == "");

  std::vector<StepTimes> found(2);
  std::vector<std::thread> threads;
  for (StepTimes& each : found) {
    threads.emplace_back([&each, &made] {
      for (int i = 0; i < 20; ++i) {
        each = evaluate_events(made.priced);
        each = evaluate_maps(made.priced);
      }
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(difference(found[0], once) == "");
  CHECK(difference(found[1], once) == "");
}

TEST_CASE("Each rank of a mesh answers in its own place") {
  // 3 tensor x 2 data x 2 stages. In rank order: six of stage 0, then six of stage 1.
  Case made = simple_pipeline("gpipe", {2, 1, 1}, 10_us, 20_us);
  made.program->mesh = {3, 2, 2};
  append_joint(made, Opcode::reduce_gradient,
               {.name = "gradients", .communicator = data_group, .classes = {0}}, 0_us, 5_us);
  const StepTimes times = evaluate_all_ranks(made.priced);
  REQUIRE(times.ranks.size() == 12);
  for (std::int64_t rank = 0; rank < 12; ++rank) {
    const bool first = made.program->mesh.stage_of(rank) == 0;
    CHECK(times.ranks[static_cast<std::size_t>(rank)][Lane::compute] == (first ? 60_us : 40_us));
  }
  CHECK(times.collective_starts == std::vector<Time>(6, 60_us));
  CHECK(times.step == 65_us);
}

TEST_CASE("A time that maps get wrong by a picosecond is found by the events") {
  const Case made = random_program(7);
  StepTimes times = evaluate_maps(made.priced);
  CHECK(verify(made.priced, times).events > 0);
  times.ranks.back().free.front() += Time{1};
  CHECK_THROWS_WITH(verify(made.priced, times), Catch::Contains("maps and events differ: rank "));
}

}  // namespace
}  // namespace orrery::models
