#include "models/pricing/beside_communication.hpp"

#include <catch2/catch.hpp>

#include "models/evaluation/verify.hpp"
#include "models/pricing/price.hpp"
#include "models/software/software.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// The question on GPUs whose kernels take `slowdown` times as long next to a collective.
Question measured(Question asked, double slowdown) {
  asked.cluster.node.gpu.calibration.beside_communication = {.compute = slowdown,
                                                             .communication = 1};
  return asked;
}

Question with_plan(const std::string& plan, const std::string& cluster = "dgx-h100 x 2") {
  return question("llama2-7b", cluster, plan + ",micro_batch=1,seq_len=4096", "nemo");
}

/// Hidden parts of the tensor-parallel collectives of a step, on the slowest rank.
Time hidden_of(const Prediction& found) {
  const Program& program = *found.program;
  Time hidden{};
  for (const Instruction& each : program.classes[found.slowest].instructions) {
    if (each.op != Opcode::forward && each.op != Opcode::backward) continue;
    for (const Invocation& run : program.phases[each.target].invocations) {
      for (const PricedOperation& price : found.priced.blocks[run.block]) {
        hidden += (price.lead + price.trail) * run.count;
      }
    }
  }
  return hidden;
}

TEST_CASE(
    "Kernels next to hidden tensor-parallel collectives take as much longer as was measured") {
  const Question asked = with_plan("tensor=8,sequence=true,data=1,global_batch=4", "dgx-h100 x 1");
  const Prediction alone = predict(asked);
  const Time hidden = hidden_of(alone);
  REQUIRE(hidden > Time{});
  const Prediction slowed = predict(measured(asked, 1.3));
  // No other communication overlaps: 0.3 of what is hidden, within the roundings of each kernel.
  CHECK(seconds(slowed.step - alone.step) == Approx(0.3 * seconds(hidden)).epsilon(0.02));
  CHECK(predict(measured(asked, 1)).step == alone.step);
  Question in_turn = asked;
  in_turn.plan.overlap.tensor = false;  // nothing is hidden
  CHECK(predict(measured(in_turn, 1.3)).step == predict(in_turn).step);
}

TEST_CASE("A step without communication is as long whatever a GPU loses next to it") {
  Question asked =
      question("gpt2", "dgx-h100 x 1", "data=8,micro_batch=1,global_batch=8,seq_len=1024", "nemo");
  asked.cluster.node.gpus = 1;
  asked.plan.data = asked.plan.batch.global = 1;
  CHECK(predict(measured(asked, 1.3)).step == predict(asked).step);
}

TEST_CASE("Kernels next to gradient reductions take longer, by at most what overlaps") {
  Question asked = with_plan("tensor=1,data=16,global_batch=32,overlap=true,bucket=100MB");
  const Time alone = predict(asked).step;
  const Time slowed = predict(measured(asked, 1.3)).step;
  CHECK(slowed > alone);
  CHECK(ratio(slowed, alone) < 1.3);
  asked.plan.overlap.gradients = false;
  asked.plan.overlap.gathers = false;
  CHECK(predict(measured(asked, 1.3)).step == predict(asked).step);
}

TEST_CASE("What was measured next to communication stands before the stack's own share") {
  const Question asked = question("llama3.1-8b", "dgx-h100 x 2",
                                  "zero=3,global_batch=16,seq_len=2048", "pytorch-fsdp");
  Question quiet = asked;
  quiet.software.overlap.contention = 0;
  const Time alone = predict(quiet).step;
  CHECK(predict(measured(asked, 1)).step == alone);
  CHECK(predict(measured(asked, 1.17)).step == predict(measured(quiet, 1.17)).step);
  CHECK(predict(measured(asked, 1.3)).step > predict(measured(asked, 1.17)).step);
}

TEST_CASE("Events and maps agree on kernels that communication slows") {
  for (const char* plan : {"tensor=8,sequence=true,data=2,zero=1,global_batch=8",
                           "tensor=2,pipeline=4,data=2,global_batch=16,overlap=true"}) {
    const Prediction found = predict(measured(with_plan(plan), 1.3));
    CHECK_NOTHROW(verify(found.priced, found.times));
  }
}

}  // namespace
}  // namespace orrery::models
