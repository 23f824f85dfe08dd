#include "models/prediction/error/uncertainty.hpp"

#include <cmath>

namespace orrery::models {

double widening(std::int64_t fallbacks) {
  return std::pow(widening_of_a_fallback_curve, static_cast<double>(fallbacks));
}

Uncertainty uncertainty_of(Time step, const Evidence& evidence, std::int64_t fallbacks,
                           double of_curves) {
  constexpr double decile = 1.28;  // of a normal error, in standard deviations
  const double wider = widening(fallbacks);
  const auto away = [&](double quantile) {
    return std::hypot(wider * quantile, decile * of_curves);
  };
  return {.p10 = scaled(step, std::exp(-away(evidence.low))),
          .p50 = step,
          .p90 = scaled(step, std::exp(away(evidence.high)))};
}

}  // namespace orrery::models
