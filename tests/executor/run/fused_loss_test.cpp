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
    plan.micro_batch = 2;
    const Outcome at_once = three_steps(model, plan, Arithmetic::ring);
    plan.fused_cross_entropy = true;
    const Outcome in_pieces = three_steps(model, plan, Arithmetic::ring);
    CHECK(same_bits(in_pieces.gradients, at_once.gradients));
    check_bits(in_pieces, at_once);
    plan.pipeline = plan.data = 2;
    plan.micro_batch = 1;
    check_bits(three_steps(model, plan, Arithmetic::ring), at_once);
    const Outcome real = three_steps(model, plan, Arithmetic::real);
    plan.fused_cross_entropy = false;
    CHECK(distance(real.gradients, three_steps(model, plan, Arithmetic::real).gradients) < 1e-12);
  }
}

TEST_CASE("In pieces, too, where nothing but adapters is trained") {
  // The head has no weight gradient: its input is kept for the products of later pieces alone.
  Plan plan = small_plan();
  plan.task = models::Task::lora;
  plan.lora_rank = 2;
  plan.micro_batch = 2;
  const Outcome at_once = three_steps(small_llama(), plan, Arithmetic::real);
  plan.fused_cross_entropy = true;
  const Outcome in_pieces = three_steps(small_llama(), plan, Arithmetic::real);
  CHECK(distance(in_pieces.gradients, at_once.gradients) < 1e-12);
  CHECK(in_pieces.steps[2].loss == Approx(at_once.steps[2].loss).epsilon(1e-12));
}

}  // namespace
}  // namespace orrery::executor
