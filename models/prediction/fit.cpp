#include "models/prediction/fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/prediction/error/published_errors.hpp"

namespace orrery::models {

std::string_view name(Fit fit) {
  constexpr std::array<std::string_view, 4> names{"yes", "tight", "doubtful", "no"};
  return names[static_cast<std::size_t>(fit)];
}

double usual_headroom() {
  return published_errors().memory_median_pct / 100;
}

MemoryNeed memory_need(Bytes held, Bytes dynamic) {
  constexpr double low = 0.5, high = 1.3;
  const auto of = [&](double share) {
    return held + nearest_count<Bytes>(share * static_cast<double>(dynamic.count()));
  };
  return {.least = of(low), .predicted = held + dynamic, .most = of(high)};
}

Fit fit_of(const MemoryNeed& needed, Bytes available, double headroom) {
  if (needed.least > available) return Fit::no;
  if (needed.predicted > available) return Fit::doubtful;
  const double used = static_cast<double>(needed.predicted.count());
  const double allowed = static_cast<double>(available.count()) * (1 - headroom);
  return used <= allowed ? Fit::yes : Fit::tight;
}

PeakRange peak_range(Bytes predicted, const Evidence& evidence) {
  const auto bytes = static_cast<double>(predicted.count());
  return {.p10 = nearest_count<Bytes>(bytes * std::exp(-evidence.low)),
          .p90 = nearest_count<Bytes>(bytes * std::exp(evidence.high))};
}

double fit_probability(Bytes needed, Bytes available, const Evidence& evidence) {
  if (needed.count() <= 0) return 1;
  if (available.count() <= 0) return 0;
  constexpr double decile = 1.2816, least_spread = 1e-6;
  const double room = std::log(ratio(available, needed));
  const double spread = std::max(least_spread, room < 0 ? evidence.low : evidence.high) / decile;
  return std::erfc(-room / spread / std::sqrt(2.0)) / 2;
}

Fit weighed(Fit by_bounds, double probability, bool plan_is_assumed) {
  constexpr double unlikely = 0.1, impossible = 1e-4;
  if (by_bounds != Fit::no) return by_bounds;
  return probability < (plan_is_assumed ? impossible : unlikely) ? Fit::no : Fit::doubtful;
}

}  // namespace orrery::models
