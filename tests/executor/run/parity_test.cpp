// Every cut of a model computes what one rank computes. Gradients by norm, per tensor: sums in
// another order differ by rounding, so 1e-12 in fp64 and 1e-5 in fp32; in the ring nothing rounds
// and bits are equal. Parameters after Adam: where a gradient is 0 but for rounding, the update is
// rounding over epsilon, 1e-18 / 1e-8, next to others of 1: 1e-9 holds.

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/executor/cuts.hpp"

namespace orrery::executor {
namespace {

using models::Plan;
using models::Zero;

TEST_CASE("In the ring every cut gives the bits of one rank") {
  check_in_ring(cuts());
}

TEST_CASE("In fp64 every cut gives what one rank does, to rounding") {
  check_in_fp64(cuts());
}

TEST_CASE("In fp32 every cut gives what one rank does, to its rounding") {
  check_in_fp32(cuts());
}

TEST_CASE("In bf16 a cut is as near to fp32 as one rank is") {
  Cut whole =
      cut("bf16", small_llama(), [](Plan& p) { p.formats.precision = models::Precision::fp32; });
  const Outcome& wide = reference(whole, Arithmetic::real);
  for (const std::int64_t tensor : {1, 2}) {
    Plan plan = small_plan();
    plan.formats.precision = models::Precision::bf16;
    plan.tensor = tensor;
    plan.data = 2;
    plan.sharding.zero = Zero::one;
    const Outcome narrow = run({.model = whole.model, .plan = plan});
    // 8 bits of mantissa: 2^-8 each in some dozens of operations.
    CHECK(distance(narrow.gradients, wide.gradients) < 5e-2);
    CHECK(narrow.steps[0].loss == Approx(wide.steps[0].loss).epsilon(1e-3));
  }
}

TEST_CASE("The loss of nothing learned is the logarithm of the vocabulary, and falls") {
  Job job{.model = small_gpt(), .plan = small_plan(), .steps = 30};
  job.settings.adam.learning_rate = 1e-2;
  const auto same = [] {  // the same samples in every step
    class Same final : public TokenSource {
      Time fill(std::int64_t, std::int64_t sample, std::span<std::int64_t> to) const override {
        for (std::size_t i = 0; i < to.size(); ++i) {
          to[i] = (sample * 5 + static_cast<std::int64_t>(i) * 3) % 37;
        }
        return {};
      }
    };
    return std::make_unique<Same>();
  }();
  job.settings.tokens = same.get();
  const Outcome one = run(job);
  CHECK(one.steps.front().loss == Approx(std::log(37.0)).margin(0.05));
  CHECK(one.steps.back().loss < 0.5 * one.steps.front().loss);
}

TEST_CASE("The same run gives the same bits") {
  const Cut each = cut("", small_llama(), [](Plan& p) {
    p.tensor = p.data = p.pipeline = 2;
    p.formats.precision = models::Precision::fp32;
  });
  const Job job{.model = each.model, .plan = each.plan, .steps = 2};
  const Outcome first = run(job), second = run(job);
  CHECK(same_bits(first.parameters, second.parameters));
  CHECK(first.steps[1].loss == second.steps[1].loss);
}

}  // namespace
}  // namespace orrery::executor
