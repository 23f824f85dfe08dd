#pragma once
// Quantiles of a list, of numbers or of quantities.

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/errors.hpp"
#include "sim/quantity.hpp"

namespace orrery {

/// The value below which a share of the list lies, interpolated linearly between neighbours.
///   position = share (n - 1) in the sorted list
/// Source  the usual definition (Hyndman & Fan 1996, type 7)
/// Errors  an empty list, a share outside [0, 1]: ContractError
template <class Value>
Value quantile(std::vector<Value> values, double share) {
  ensure(!values.empty() && share >= 0 && share <= 1, "a quantile needs at least one value");
  std::ranges::sort(values);
  const double place = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  const double rest = place - static_cast<double>(low);
  if constexpr (std::is_arithmetic_v<Value>) {
    return values[low] + (values[high] - values[low]) * rest;
  } else {
    return values[low] + scaled(values[high] - values[low], rest);
  }
}

inline double quantile(std::vector<double> values, double share) {
  return quantile<double>(std::move(values), share);
}

/// Errors  an empty list: ContractError
template <class Value>
Value median(std::vector<Value> values) {
  return quantile(std::move(values), 0.5);
}

}  // namespace orrery
