// A head that makes its logits piece by piece.

#include <catch2/catch.hpp>

#include "tests/executor/cuts.hpp"

namespace orrery::executor {
namespace {

using models::Model;
using models::Plan;

Outcome three_steps(const Model& model, const Plan& plan, Arithmetic arithmetic) {
  return run({.model = model, .plan = plan, .arithmetic = arithmetic, .steps = 3});
}

TEST_CASE("A loss that makes its logits piece by piece is the loss") {
  // 37 columns of logits are ceil(37 / 16) = 3 times the model's width, so a third of a
  // micro-batch's 16 rows is made at a time, as a power of two: 8.
  for (const Model& model : {small_gpt(), small_llama()}) {
    INFO(model.name);
    Plan plan = small_plan();
    plan.batch.micro = 2;
    const Outcome at_once = three_steps(model, plan, Arithmetic::ring);
    plan.kernels.fused_cross_entropy = true;
    const Outcome in_pieces = three_steps(model, plan, Arithmetic::ring);
    CHECK(same_bits(in_pieces.gradients, at_once.gradients));
    check_bits(in_pieces, at_once);
    plan.pipeline = plan.data = 2;
    plan.batch.micro = 1;
    check_bits(three_steps(model, plan, Arithmetic::ring), at_once);
    const Outcome real = three_steps(model, plan, Arithmetic::real);
    plan.kernels.fused_cross_entropy = false;
    CHECK(distance(real.gradients, three_steps(model, plan, Arithmetic::real).gradients) < 1e-12);
  }
}

// Each rank has a share of the columns: of every piece the ranks gather what they know of its loss,
// and the gradient of what the head reads is summed once.
TEST_CASE("In pieces over shards of the vocabulary the loss is that of one rank") {
  for (const Model& model : {small_gpt(), small_llama()}) {
    Plan plan = small_plan();
    plan.batch.micro = 2;
    const Outcome whole = three_steps(model, plan, Arithmetic::ring);
    plan.kernels.fused_cross_entropy = true;
    for (const bool sequence : {false, true}) {
      INFO(model.name << (sequence ? ", sequence parallel" : ""));
      plan.tensor = plan.data = 2;
      plan.sequence_parallel = sequence;
      const Outcome cut = three_steps(model, plan, Arithmetic::ring);
      CHECK(same_bits(cut.gradients, whole.gradients));
      check_bits(cut, whole);
      Plan at_once = plan;
      at_once.kernels.fused_cross_entropy = false;
      const Outcome real = three_steps(model, plan, Arithmetic::real);
      CHECK(distance(real.gradients, three_steps(model, at_once, Arithmetic::real).gradients) <
            1e-12);
    }
  }
}

TEST_CASE("What a rank does not gather of a piece's loss shows") {
  Plan plan = small_plan();
  plan.batch.micro = 2;
  plan.tensor = 2;
  plan.kernels.fused_cross_entropy = true;
  const Job job{.model = small_llama(), .plan = plan};
  Job wrong = job;
  wrong.disturb = [](Kernel& kernel) {  // a shard's sum of exponentials
    if (kernel.operation->kind != models::OpKind::cross_entropy_backward) return;
    reinterpret_cast<double*>(kernel.reads[2].data)[1] *= 2;
  };
  CHECK(distance(run(wrong).gradients, run(job).gradients) > 1e-3);
}

TEST_CASE("In pieces, too, where nothing but adapters is trained") {
  // The head has no weight gradient: its input is kept for the products of later pieces alone.
  Plan plan = small_plan();
  plan.task = models::Task::lora;
  plan.adapters.rank = 2;
  plan.batch.micro = 2;
  const Outcome at_once = three_steps(small_llama(), plan, Arithmetic::real);
  plan.kernels.fused_cross_entropy = true;
  const Outcome in_pieces = three_steps(small_llama(), plan, Arithmetic::real);
  CHECK(distance(in_pieces.gradients, at_once.gradients) < 1e-12);
  CHECK(in_pieces.steps[2].loss == Approx(at_once.steps[2].loss).epsilon(1e-12));
}

}  // namespace
}  // namespace orrery::executor
