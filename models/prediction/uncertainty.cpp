#include "models/prediction/uncertainty.hpp"

#include <algorithm>
#include <cmath>

#include "models/prediction/published_errors.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

double widening(std::int64_t borrowed) {
  return std::pow(widening_of_a_borrowed_curve, static_cast<double>(borrowed));
}

namespace {

Residuals of_generic() {
  static const Residuals residuals = [] {
    const Document document = Document::from(software_profile("generic"), "generic");
    const Software generic = read_software(document.root());
    ensure(generic.residuals.has_value(), "the generic profile states its uncertainty");
    return *generic.residuals;
  }();
  return residuals;
}

/// An interval holds what is predicted, even where all published runs were off one way.
Residuals of_sharded(const Software& software) {
  const auto [errors, own] = sharded_errors_of(software);
  return {.p10 = std::min(0.0, errors.log_p10),
          .p90 = std::max(0.0, errors.log_p90),
          .rows = errors.rows,
          .source = published_errors().source,
          .of = own ? "ZeRO-2, ZeRO-3 and FSDP on this stack"
                    : "ZeRO-2, ZeRO-3 and FSDP on all stacks"};
}

}  // namespace

Residuals residuals_of(const Software& software, const Plan& plan) {
  if (shards_gradients(plan)) return of_sharded(software);
  return software.residuals ? *software.residuals : of_generic();
}

Uncertainty uncertainty_of(Time step, const Residuals& residuals, std::int64_t borrowed) {
  const double wider = widening(borrowed);
  return {.p10 = scaled(step, std::exp(wider * residuals.p10)),
          .p50 = step,
          .p90 = scaled(step, std::exp(wider * residuals.p90))};
}

}  // namespace orrery::models
