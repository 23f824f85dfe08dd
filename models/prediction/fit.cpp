#include "models/prediction/fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "models/prediction/published_errors.hpp"

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

double fit_probability(Bytes needed, Bytes available) {
  if (needed.count() <= 0) return 1;
  if (available.count() <= 0) return 0;
  const double room = std::log(ratio(available, needed));
  const std::vector<double>& curve = published_errors().memory_percentiles;
  const auto above = std::ranges::upper_bound(curve, room);
  if (above == curve.begin()) return 0;
  if (above == curve.end()) return 1;
  const double low = *(above - 1);
  const double step = (room - low) / (*above - low);
  const auto below = static_cast<double>(above - curve.begin() - 1);
  return (below + step) / static_cast<double>(curve.size() - 1);
}

}  // namespace orrery::models
