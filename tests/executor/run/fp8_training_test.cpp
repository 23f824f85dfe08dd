// Training in fp8. Scales are of each tensor as it lies: shards of one are scaled apart, whole
// micro-batches alike whoever computes them.

#include <catch2/catch.hpp>
#include <cmath>

#include "executor/device/fp8_operand.hpp"
#include "executor/layout/block_plan.hpp"
#include "models/lowering/lower.hpp"
#include "tests/executor/cuts.hpp"
#include "tests/models/indices.hpp"

namespace orrery::executor {
namespace {

using models::Plan;
using models::Precision;
using models::Recompute;
using models::Zero;

Job job_of(const models::Model& model, Precision precision, std::int64_t steps) {
  Job job{.model = model, .plan = small_plan(), .steps = steps};
  job.plan.formats.precision = precision;
  return job;
}

TEST_CASE("In fp8 gradients and losses are those of bf16 but for the format's rounding") {
  // An operand is off by a step / sqrt(12) in the mean square, and steps are some 2^-3.5 of a
  // number in e4m3, 2^-2.5 in e5m2: 2.6 % and 5.1 %, with either sign, so a product of both by 5.7
  // %. A gradient has some ten of them after it: sqrt(10) 5.7 %, 18 %.
  for (const models::Model& model : {small_gpt(), small_llama()}) {
    const Outcome bf16 = run(job_of(model, Precision::bf16, 1));
    const Outcome fp8 = run(job_of(model, Precision::fp8, 1));
    CHECK(distance(fp8.gradients, bf16.gradients) < 0.2);
    CHECK(distance(fp8.gradients, bf16.gradients) > 0.01);  // it is another arithmetic
    CHECK(fp8.steps[0].loss == Approx(bf16.steps[0].loss).epsilon(1e-3));
  }
}

/// The same samples in every step.
class Same final : public TokenSource {
 public:
  Time fill(std::int64_t, std::int64_t sample, std::span<std::int64_t> to) const override {
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i] = (5 * sample + static_cast<std::int64_t>(i * i)) % 37;
    }
    return {};
  }
};

TEST_CASE("In fp8 the loss falls as it does in bf16") {
  const Same same;
  for (const models::Model& model : {small_gpt(), small_llama()}) {
    double last[2];
    for (const Precision precision : {Precision::bf16, Precision::fp8}) {
      Job job = job_of(model, precision, 30);
      job.settings.adam.learning_rate = 1e-2;
      job.settings.tokens = &same;
      const Outcome out = run(job);
      CHECK(out.steps.front().loss == Approx(std::log(37)).margin(0.05));
      last[precision == Precision::fp8 ? 1 : 0] = out.steps.back().loss;
    }
    CHECK(last[0] < 1.5);  // from 3.61
    CHECK(last[1] < 1.1 * last[0] + 0.05);
  }
}

TEST_CASE("In fp8 recomputation gives the same bits") {
  for (const models::Model& model : {small_gpt(), small_llama()}) {
    const Outcome kept = run(job_of(model, Precision::fp8, 3));
    for (const Recompute each : {Recompute::selective, Recompute::full}) {
      Job job = job_of(model, Precision::fp8, 3);
      job.plan.recompute.kind = each;
      const Outcome again = run(job);
      CHECK(same_bits(again.gradients, kept.gradients));
      CHECK(same_bits(again.parameters, kept.parameters));
      CHECK(again.steps[2].loss == kept.steps[2].loss);
    }
  }
}

TEST_CASE("In fp8 stages and data ranks give what one rank does, to the rounding of fp32 sums") {
  // Whoever computes a micro-batch, its tensors and their scales are the same bits; what differs is
  // the order in which gradients of micro-batches are added up.
  for (const models::Model& model : {small_gpt(), small_llama()}) {
    const Job whole = job_of(model, Precision::fp8, 1);
    const Outcome one = run(whole);
    const auto check = [&](auto change) {
      Job cut = whole;
      change(cut.plan);
      const Outcome many = run(cut);
      CHECK(many.steps[0].loss == Approx(one.steps[0].loss).epsilon(1e-12));
      CHECK(distance(many.gradients, one.gradients) < 1e-6);
    };
    check([](Plan& p) { p.pipeline = 2; });
    for (const Zero zero : {Zero::none, Zero::one, Zero::two, Zero::three}) {
      check([&](Plan& p) {
        p.data = 2;
        p.sharding.zero = zero;
      });
    }
    check([](Plan& p) {
      p.pipeline = p.data = 2;
      p.recompute.kind = Recompute::full;
    });
  }
}

TEST_CASE("In fp8 tensor ranks learn what one rank does, though they scale their shards apart") {
  // Scales are powers of two: a shard's own moves its numbers only where they are below the least
  // normal one, by half a unit at the most: 2^-10 of 224 or more, the tensor's largest. What moves
  // more are sums of ranks, stored in bf16: by 2^-9 of a number, so that one in 2^-9 / 2^-3.5 goes
  // to another code, a step away: sqrt(2^-5.5) 2^-3.5, 1.3 % of a tensor in e4m3, and 1.9 % in
  // e5m2. After some ten products that is sqrt(10) 1.9 %, 6 %; the worst tensor has twice that.
  for (const models::Model& model : {small_gpt(), small_llama()}) {
    const Outcome one = run(job_of(model, Precision::fp8, 1));
    for (const std::int64_t tensor : {2, 4}) {
      Job cut = job_of(model, Precision::fp8, 1);
      cut.plan.tensor = tensor;
      const Outcome many = run(cut);
      CHECK(distance(many.gradients, one.gradients) < 0.12);
      CHECK(many.steps[0].loss == Approx(one.steps[0].loss).epsilon(1e-3));
    }
  }
}

TEST_CASE("In fp8 forward keeps one byte of what its products read, and a scale") {
  const models::Model model = changed(small_llama(1), [](auto& draft) {
    draft.hidden = 64;
    draft.mlp.width = 128;
    draft.attention.head_dim = 8;
  });
  const Job narrow = job_of(model, Precision::fp8, 1);
  const models::Program program = lowered(model, narrow.plan);
  const BlockPlans plans =
      plan_blocks(program.blocks[models::layer_forward], program.blocks[models::layer_backward]);
  std::int64_t promised = 0, scales = 0;
  for (const models::Operand& each : program.blocks[models::layer_backward].operands) {
    if (each.role != models::Role::saved) continue;
    promised += aligned(each.bytes().count());
    if (each.dtype == models::DType::fp8) scales += fp8_scale_room;
  }
  CHECK(scales == 4 * 64);  // of qkv, projection, up and down
  CHECK(plans.forward.saved == promised + scales);
}

TEST_CASE("Shards of a sequence are not gathered in fp8") {
  Job job = job_of(small_llama(), Precision::fp8, 1);
  job.plan.tensor = 2;
  job.plan.sequence_parallel = true;
  CHECK_THROWS_WITH(run(job),
                    "cannot execute fp8 under sequence parallelism: ranks have different scales "
                    "for the operands that layer.forward/norm1.out.fp8.gather combines");
}

}  // namespace
}  // namespace orrery::executor
