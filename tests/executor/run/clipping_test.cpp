// Clipping by the norm of all gradients: what AdamW's first moment holds after one step from zero
// is (1 - beta1) times the clipped gradient, to the last digits.

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/executor/cuts.hpp"

namespace orrery::executor {
namespace {

using models::Plan;
using models::Precision;
using models::Zero;

/// Of all elements of the uncut model, in double.
double norm_of(const Tensors& gradients, double loss_scale) {
  double sum = 0;
  for (const auto& [name, values] : gradients) {
    for (const double each : values) sum += each * each;
  }
  return std::sqrt(sum) / loss_scale;
}

struct Clipped {
  double norm = 0;    // by hand, of the gradients before clipping
  double factor = 0;  // that the first moment has seen
  double spread = 0;  // of it, over all elements
  StepOutcome step;
};

Clipped clipped(const Cut& of, std::optional<double> limit, double loss_scale = 1) {
  Job job{.model = of.model, .plan = of.plan};
  if (limit) job.settings.clip = *limit;
  if (loss_scale != 1) job.settings.loss_scale = loss_scale;
  const Outcome outcome = run(job);
  Clipped found{.norm = norm_of(outcome.gradients, loss_scale), .step = outcome.steps[0]};
  // The projection of the moment on the gradient, and what it leaves out.
  double product = 0, square = 0, rest = 0;
  const auto each = [&](const auto& work) {
    for (const auto& [name, gradient] : outcome.gradients) {
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        work(gradient[i] / loss_scale, outcome.first.at(name)[i] / (1 - 0.9));
      }
    }
  };
  each([&](double g, double m) {
    product += g * m;
    square += g * g;
  });
  found.factor = product / square;
  each([&](double g, double m) { rest += (m - found.factor * g) * (m - found.factor * g); });
  found.spread = std::sqrt(rest / square);
  return found;
}

std::vector<Cut> some_cuts(Precision precision) {
  std::vector<Cut> all;
  all.push_back(cut("alone", small_llama(), [&](Plan& p) { p.formats.precision = precision; }));
  for (const Zero zero : {Zero::none, Zero::one, Zero::two, Zero::three}) {
    all.push_back(cut("ZeRO " + std::to_string(static_cast<int>(zero)), small_gpt(), [&](Plan& p) {
      p.data = 2;
      p.sharding.zero = zero;
      p.formats.precision = precision;
    }));
  }
  all.push_back(cut("tensor and pipeline", small_gpt(), [&](Plan& p) {
    p.tensor = p.pipeline = 2;
    p.formats.precision = precision;
  }));
  return all;
}

/// fp64: some hundred operations of 1.1e-16 each; fp32: of 6e-8, of which sums keep a few.
struct Format {
  Precision precision;
  double tolerance;
};
constexpr Format formats[] = {{Precision::fp64, 1e-12}, {Precision::fp32, 1e-6}};

TEST_CASE("Gradients above the limit are multiplied by the limit over their norm") {
  for (const Format& format : formats) {
    for (const Cut& each : some_cuts(format.precision)) {
      for (const double limit : {0.25, 0.01}) {
        INFO(each.name << ", limit " << limit << ", precision "
                       << static_cast<int>(format.precision));
        const Clipped found = clipped(each, limit);
        REQUIRE(found.norm > limit);
        const double expected = limit / found.norm;
        CHECK(found.step.gradient_norm == Approx(found.norm).epsilon(format.tolerance));
        CHECK(found.factor == Approx(expected).epsilon(format.tolerance));
        CHECK(found.spread <= format.tolerance);
      }
    }
  }
}

TEST_CASE("Gradients below the limit, or without one, are left as they are") {
  for (const Format& format : formats) {
    for (const Cut& each : some_cuts(format.precision)) {
      INFO(each.name);
      const double norm = clipped(each, 0.0).norm;
      CHECK(clipped(each, 0.0).factor == Approx(1).epsilon(format.tolerance));
      CHECK(clipped(each, norm * 1.00001).factor == Approx(1).epsilon(format.tolerance));
      CHECK(clipped(each, norm / 1.00001).factor == Approx(1 / 1.00001).epsilon(format.tolerance));
    }
  }
}

TEST_CASE("The loss's scale is taken out before the norm is compared with the limit") {
  for (const Cut& each : some_cuts(Precision::fp64)) {
    INFO(each.name);
    const Clipped found = clipped(each, 0.25, 1024);
    REQUIRE(found.norm > 0.25);
    CHECK(found.step.gradient_norm == Approx(found.norm).epsilon(1e-12));
    CHECK(found.factor == Approx(0.25 / found.norm).epsilon(1e-12));
  }
}

TEST_CASE("Unless asked otherwise the limit is 1") {
  // Source  Brown et al. 2020, GPT-3, appendix B; Touvron et al. 2023, Llama, section 2.3
  models::Model steep = small_llama();
  steep.embedding.vocab = 3;  // the fewer the tokens, the more of them push the same rows
  const Cut of = cut("steep", steep, [](Plan& p) { p.batch.global = 1; });
  const Clipped found = clipped(of, std::nullopt);
  INFO("norm " << found.norm);
  CHECK(found.factor == Approx(std::min(1.0, 1.0 / found.norm)).epsilon(1e-12));
  CHECK(RunSettings{}.clip == 1.0);
}

}  // namespace
}  // namespace orrery::executor
