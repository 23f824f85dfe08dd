// The scale of the loss is a power of two, so it changes nothing but what is lost below fp16's
// smallest number and above its largest.

#include "executor/run/loss_scale.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <mutex>
#include <thread>

#include "tests/executor/cuts.hpp"

namespace orrery::executor {
namespace {

using models::Plan;
using models::Precision;
using models::Zero;

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST_CASE("The scale is halved where gradients overflow and doubled after 2000 updates") {
  LossScale scale{first_loss_scale};
  CHECK(scale.value() == 65536);
  CHECK_FALSE(scale.accept(infinity));
  CHECK_FALSE(scale.accept(std::nan("")));
  CHECK(scale.value() == 16384);
  CHECK(scale.state().skipped == 2);
  for (int i = 0; i < 1999; ++i) CHECK(scale.accept(1.0));
  CHECK(scale.value() == 16384);
  CHECK(scale.accept(1.0));
  CHECK(scale.value() == 32768);
  for (int i = 0; i < 1999; ++i) scale.accept(1.0);
  CHECK_FALSE(scale.accept(infinity));  // counts from the beginning again
  CHECK(scale.value() == 16384);
  CHECK(scale.accept(1.0));
  CHECK(scale.value() == 16384);
  for (int i = 0; i < 20; ++i) scale.accept(infinity);
  CHECK(scale.value() == 1);
}

TEST_CASE("Without a scale an update that is not finite is left out and counted too") {
  LossScale none;
  CHECK_FALSE(none.counts());
  CHECK(none.accept(1.0));
  CHECK_FALSE(none.accept(infinity));
  CHECK_FALSE(none.accept(std::nan("")));
  CHECK(none.value() == 1);
  CHECK(none.state().skipped == 2);
  CHECK(none.counts());
  none.load({.value = 8, .good = 3, .skipped = 2});  // of a run that had one
  CHECK(none.value() == 1);
  CHECK(none.state().skipped == 2);
}

TEST_CASE("Ten steps in a row that no smaller scale can help have diverged") {
  const auto left_out = [](LossScale scale, int times) {
    for (int i = 0; i < times; ++i) scale.accept(infinity);
    return scale.diverged();
  };
  CHECK_FALSE(left_out(LossScale{}, 9));
  CHECK(left_out(LossScale{}, 10));
  CHECK_FALSE(left_out(LossScale{first_loss_scale}, 16 + 9));  // 65536 is halved 16 times
  CHECK(left_out(LossScale{first_loss_scale}, 16 + 10));
  LossScale interrupted;
  for (int i = 0; i < 9; ++i) interrupted.accept(infinity);
  interrupted.accept(1.0);
  CHECK_FALSE(left_out(interrupted, 9));
}

Job scaled(const Cut& of, std::optional<double> scale, std::int64_t steps = 3) {
  Job job{.model = of.model, .plan = of.plan, .steps = steps};
  job.settings.loss_scale = scale;
  return job;
}

/// One with its clipping at work, and one without.
std::vector<Cut> exact_cuts() {
  std::vector<Cut> all;
  for (const Precision precision : {Precision::fp32, Precision::fp64}) {
    all.push_back(cut("alone", small_llama(), [&](Plan& p) { p.formats.precision = precision; }));
    all.push_back(cut("cut", small_gpt(), [&](Plan& p) {
      p.formats.precision = precision;
      p.tensor = p.data = p.pipeline = 2;
      p.sharding.zero = Zero::one;
    }));
  }
  return all;
}

TEST_CASE("A power of two as scale changes no bit of what is computed without overflow") {
  for (const Cut& each : exact_cuts()) {
    for (const double clip : {0.0, 0.01}) {
      INFO(each.name << ", clip " << clip);
      Job plain = scaled(each, std::nullopt), high = scaled(each, 256.0);
      plain.settings.clip = high.settings.clip = clip;
      const Outcome one = run(plain), other = run(high);
      CHECK(same_bits(other.parameters, one.parameters));
      CHECK(same_bits(other.second, one.second));
      for (std::size_t step = 0; step < 3; ++step) {
        CHECK(other.steps[step].loss == one.steps[step].loss);
        CHECK(other.steps[step].gradient_norm == one.steps[step].gradient_norm);
        CHECK(other.steps[step].loss_scale == 256);
        CHECK(one.steps[step].loss_scale == 1);
      }
      CHECK_FALSE(same_bits(other.gradients, one.gradients));  // they are 256 times as large
    }
  }
}

/// The samples of step 0, then those of `second`, and so on.
class Steps final : public TokenSource {
 public:
  explicit Steps(std::vector<std::int64_t> order) : order_{std::move(order)} {}
  Time fill(std::int64_t step, std::int64_t sample, std::span<std::int64_t> to) const override {
    return tokens_->fill(order_.at(static_cast<std::size_t>(step)), sample, to);
  }

 private:
  std::vector<std::int64_t> order_;
  std::unique_ptr<TokenSource> tokens_ = synthetic_tokens(1, 37);
};

TEST_CASE("A step whose gradients overflow is as if it had not been, at half the scale") {
  for (const Zero zero : {Zero::none, Zero::one, Zero::two, Zero::three}) {
    INFO("ZeRO " << static_cast<int>(zero));
    const Cut of = cut("overflow", small_gpt(), [&](Plan& p) {
      p.data = 2;
      p.sharding.zero = zero;
      p.formats.precision = Precision::fp32;
    });
    const Steps all{{0, 1, 2}}, without{{0, 2}};
    Job job = scaled(of, 1024.0);
    job.settings.tokens = &all;
    // Infinite is the gradient of every logit, in the second step alone.
    static thread_local int backwards = 0;
    backwards = 0;
    job.disturb = [](Kernel& kernel) {
      if (kernel.operation->kind != models::OpKind::cross_entropy_backward) return;
      constexpr int micro_batches = 2;  // of a rank, in a step
      if (backwards++ / micro_batches == 1) kernel.place.loss_scale = infinity;
    };
    const Outcome overflown = run(job);
    CHECK(overflown.steps[0].skipped == 0);
    CHECK_FALSE(std::isfinite(overflown.steps[1].gradient_norm));
    CHECK(overflown.steps[1].skipped == 1);
    CHECK(overflown.steps[1].loss_scale == 1024);
    CHECK(overflown.steps[2].skipped == 1);
    CHECK(overflown.steps[2].loss_scale == 512);

    Job straight = scaled(of, 1024.0, 2);
    straight.settings.tokens = &without;
    const Outcome never = run(straight);
    CHECK(same_bits(overflown.parameters, never.parameters));
    CHECK(same_bits(overflown.first, never.first));
    CHECK(same_bits(overflown.second, never.second));
    CHECK(overflown.steps[2].loss == never.steps[1].loss);
  }
}

/// Gradients of every logit that are not finite, from step `first` on and before `end`.
Job overflowing(const Cut& of, std::int64_t steps, int first, int end) {
  Job job = scaled(of, std::nullopt, steps);
  const auto per_step = static_cast<int>(of.plan.micro_batches());
  const auto seen = std::make_shared<std::map<std::thread::id, int>>();
  const auto lock = std::make_shared<std::mutex>();
  job.disturb = [=](Kernel& kernel) {
    if (kernel.operation->kind != models::OpKind::cross_entropy_backward) return;
    const std::lock_guard guard{*lock};
    const int step = (*seen)[std::this_thread::get_id()]++ / per_step;
    if (step >= first && step < end) kernel.place.loss_scale = std::nan("");
  };
  return job;
}

Cut without_scale(Precision precision, Zero zero) {
  return cut("no scale", small_gpt(), [&](Plan& p) {
    p.data = 2;
    p.sharding.zero = zero;
    p.formats.precision = precision;
  });
}

TEST_CASE("In every format a step whose norm is NaN changes no weight and is counted") {
  for (const Precision precision : {Precision::fp64, Precision::fp32, Precision::bf16}) {
    for (const Zero zero : {Zero::none, Zero::one, Zero::two, Zero::three}) {
      INFO("precision " << static_cast<int>(precision) << ", ZeRO " << static_cast<int>(zero));
      const Cut of = without_scale(precision, zero);
      const Outcome outcome = run(overflowing(of, 3, 1, 2));
      CHECK(std::isnan(outcome.steps[1].gradient_norm));
      CHECK(outcome.steps[0].skipped == 0);
      CHECK(outcome.steps[2].skipped == 1);
      const Steps others{{0, 2}};
      Job straight = scaled(of, std::nullopt, 2);
      straight.settings.tokens = &others;
      CHECK(same_bits(outcome.parameters, run(straight).parameters));
    }
  }
}

TEST_CASE("A run whose gradients stay NaN ends and says what to do") {
  const Cut of = without_scale(Precision::bf16, Zero::one);
  CHECK(run(overflowing(of, 12, 2, 11)).steps.back().skipped == 9);
  CHECK_THROWS_WITH(run(overflowing(of, 20, 2, 20)),
                    "the gradients of steps 3 to 12 are not finite, so none of them updated the "
                    "weights: the training has diverged; start from an earlier checkpoint, with a "
                    "lower learning rate or a wider precision");
}

TEST_CASE("In fp16 a scale keeps gradients that vanish without it") {
  const Cut of = cut("fp16", small_llama(), [](Plan& p) { p.formats.precision = Precision::fp32; });
  const Outcome& wide = reference(of, Arithmetic::real);
  const auto lost = [&](double scale) {
    Cut narrow = of;
    narrow.plan.formats.precision = Precision::fp16;
    Tensors gradients = run(scaled(narrow, scale, 1)).gradients;
    for (auto& [name, values] : gradients) {
      for (double& each : values) each /= scale;
    }
    return distance(gradients, wide.gradients);
  };
  // 11 bits, some dozens of operations; with gradients 2^16 times as small most are below 2^-24.
  CHECK(lost(256) < 1e-2);
  CHECK(lost(1.0 / 65536) > 0.1);
}

TEST_CASE("In fp16 training finds the scale that its gradients bear") {
  const Cut of = cut("fp16", small_gpt(), [](Plan& p) {
    p.formats.precision = Precision::fp16;
    p.data = 2;
  });
  // A gradient of 2^24 / 32 tokens is more than 65504: the scale is halved until it fits.
  const Outcome high = run(scaled(of, 16777216.0, 12));
  CHECK(high.steps.front().skipped == 1);
  CHECK(high.steps.back().skipped > 1);
  CHECK(high.steps.back().skipped < 12);
  CHECK(high.steps.back().loss_scale ==
        std::ldexp(16777216.0, -static_cast<int>(high.steps.back().skipped)));
  CHECK(std::isfinite(high.steps.back().gradient_norm));
  CHECK(run(scaled(of, std::nullopt, 1)).steps[0].loss_scale == 65536);  // unless set
}

}  // namespace
}  // namespace orrery::executor
