// The parity tests are tested: a fault planted in a Program, of the kinds that parallel training
// has had, must show. What `check` finds is refused before the first step.

#include <catch2/catch.hpp>

#include "models/lowering/lower.hpp"
#include "sim/errors.hpp"
#include "tests/executor/world.hpp"
#include "tests/models/indices.hpp"

namespace orrery::executor {
namespace {

using models::Instruction;
using models::Opcode;
using models::Plan;
using models::Program;

Outcome ring(const models::Model& model, const Plan& plan,
             std::function<void(Program&)> tamper = {}) {
  return run(
      {.model = model, .plan = plan, .arithmetic = Arithmetic::ring, .tamper = std::move(tamper)});
}

/// Takes an operation out of a block; those after it move up.
void erase(models::Block& block, const std::string& name) {
  const auto found = std::find_if(block.operations.begin(), block.operations.end(),
                                  [&](const models::Operation& op) { return op.name == name; });
  REQUIRE(found != block.operations.end());
  const auto gone = static_cast<models::OpId>(found - block.operations.begin());
  block.operations.erase(found);
  for (models::Operation& op : block.operations) {
    std::vector<models::OpId> after;
    for (const models::OpId id : op.after) {
      if (id == gone) continue;
      after.push_back(id > gone && id != models::block_input ? static_cast<models::OpId>(id - 1)
                                                             : id);
    }
    op.after = std::move(after);
  }
}

void erase(Program& program, Opcode op) {
  for (models::RankClass& ranks : program.classes) {
    const auto is = [&](const Instruction& each) { return each.op == op; };
    const auto end = std::remove_if(ranks.instructions.begin(), ranks.instructions.end(), is);
    REQUIRE(end != ranks.instructions.end());
    ranks.instructions.erase(end, ranks.instructions.end());
  }
}

TEST_CASE("A missing all-reduce of the tensor group shows") {
  Plan plan = small_plan();
  const Outcome one = ring(small_gpt(), plan);
  plan.tensor = 2;
  CHECK(same_bits(ring(small_gpt(), plan).gradients, one.gradients));
  const auto broken = [&](models::BlockIndex block, const std::string& name) {
    return ring(small_gpt(), plan, [&](Program& p) { erase(p.blocks[block], name); });
  };
  CHECK_FALSE(same_bits(broken(models::layer_forward, "projection.sum").gradients, one.gradients));
  CHECK_FALSE(same_bits(broken(models::layer_backward, "qkv.dgrad.sum").gradients, one.gradients));
}

TEST_CASE("Gradients that are not summed over the data axis are refused") {
  Plan plan = small_plan();
  const Outcome one = ring(small_gpt(), plan);
  plan.data = 2;
  CHECK(same_bits(ring(small_gpt(), plan).gradients, one.gradients));
  CHECK_THROWS_AS(ring(small_gpt(), plan, [](Program& p) { erase(p, Opcode::reduce_gradient); }),
                  ContractError);
}

TEST_CASE("A sum of replicated gradients that sequence parallelism needs and lacks is refused") {
  Plan plan = small_plan();
  const Outcome one = ring(small_llama(), plan);
  plan.tensor = 2;
  plan.sequence_parallel = true;
  CHECK(same_bits(ring(small_llama(), plan).gradients, one.gradients));
  CHECK_THROWS_AS(ring(small_llama(), plan, [](Program& p) { erase(p, Opcode::sum_replicas); }),
                  ContractError);
}

TEST_CASE("A tied embedding whose copies are not summed is refused") {
  Plan plan = small_plan();
  const Outcome one = ring(small_gpt(), plan);
  plan.pipeline = 2;
  CHECK(same_bits(ring(small_gpt(), plan).gradients, one.gradients));
  CHECK_THROWS_AS(ring(small_gpt(), plan, [](Program& p) { erase(p, Opcode::sum_replicas); }),
                  ContractError);
}

TEST_CASE("A stage cut that is off by one layer is refused") {
  Plan plan = small_plan();
  const Outcome one = ring(small_llama(4), plan);
  plan.pipeline = 2;
  CHECK(same_bits(ring(small_llama(4), plan).gradients, one.gradients));
  // Layers 0 to 2 and 2 to 3, where 0 to 1 and 2 to 3 are meant.
  const auto plant = [](Program& p) {
    for (const std::uint32_t phase : {models::forward_phase(0), models::backward_phase(0)}) {
      for (models::Invocation& run : p.phases[phase].invocations) {
        if (run.block == models::layer_forward) run.count = 3;
        if (run.block == models::layer_backward) run = {run.block, 2, 3};
      }
    }
  };
  CHECK_THROWS_WITH(ring(small_llama(4), plan, plant),
                    "c1 begins at layer 2, the chunk before ends at 3");
}

TEST_CASE("Keys that are skipped in a ring, or kept as the wrong rank's, show") {
  Plan plan = small_plan();
  const Outcome one = ring(small_llama(), plan);
  plan.context = 2;
  CHECK(same_bits(ring(small_llama(), plan).gradients, one.gradients));
  const auto skipped = [](Program& p) {
    erase(p.blocks[models::layer_forward], "attention.combine.1");
  };
  CHECK_FALSE(same_bits(ring(small_llama(), plan, skipped).gradients, one.gradients));
  const auto kept = [](Program& p) {
    for (models::Operation& op : p.blocks[models::layer_forward].operations) {
      if (op.sequence().leaves_keys) op.mutable_sequence().leaves_keys = false;
    }
  };
  CHECK_FALSE(same_bits(ring(small_llama(), plan, kept).gradients, one.gradients));
}

// Where backward is split, what the weight gradients read is kept by micro-batch.
TEST_CASE("In a zero bubble a weight gradient of stale activations shows, a late one is refused") {
  Plan plan = small_plan();
  const Outcome one = ring(small_llama(), plan);
  plan.pipeline = 2;
  plan.stages.schedule = "zb-h1";
  CHECK(same_bits(ring(small_llama(), plan).gradients, one.gradients));
  const auto is_weight_gradient = [](const Instruction& each) {
    return each.op == Opcode::weight_gradient;
  };
  const auto late = [&](Program& p) {
    std::vector<Instruction>& list = p.classes.front().instructions;
    const auto first = std::find_if(list.begin(), list.end(), is_weight_gradient);
    std::rotate(first, first + 1, list.end());
  };
  CHECK_THROWS_AS(ring(small_llama(), plan, late), ContractError);
  const auto stale = [](Kernel& kernel) {
    static thread_local std::byte* first = nullptr;  // what a rank's first one was made of
    const models::Operation& op = *kernel.operation;
    if (op.kind != models::OpKind::gemm || op.name != "down.wgrad") return;
    if (first == nullptr) first = kernel.reads[0].data;
    const_cast<View&>(kernel.reads[0]).data = first;
  };
  const Outcome wrong =
      run({.model = small_llama(), .plan = plan, .arithmetic = Arithmetic::ring, .disturb = stale});
  CHECK_FALSE(same_bits(wrong.gradients, one.gradients));
}

TEST_CASE("A loss that is scaled by the rank's own tokens shows") {
  Plan plan = small_plan();
  const Outcome one = run({.model = small_llama(), .plan = plan});
  plan.data = 2;
  const Outcome right = run({.model = small_llama(), .plan = plan});
  const Outcome wrong = run({.model = small_llama(), .plan = plan, .disturb = [](Kernel& kernel) {
                               kernel.place.loss_scale *= 2;
                             }});
  CHECK(distance(right.gradients, one.gradients) < 1e-12);
  CHECK(distance(wrong.gradients, one.gradients) == Approx(1.0));  // twice as large
}

}  // namespace
}  // namespace orrery::executor
