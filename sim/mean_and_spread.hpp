#pragma once
// Mean and spread of a sample.

#include <cmath>
#include <vector>

#include "sim/errors.hpp"
#include "sim/quantity.hpp"

namespace orrery {

/// Mean and standard deviation of a sample, and the standard error of its mean.
///   deviation^2 = sum (x - mean)^2 / (n - 1);  error = deviation / sqrt(n)
struct MeanAndSpread {
  double mean = 0, deviation = 0, error = 0;
};
/// Errors  an empty list: ContractError
inline MeanAndSpread mean_and_spread(const std::vector<double>& values) {
  ensure(!values.empty(), "a mean needs at least one value");
  const auto n = static_cast<double>(values.size());
  MeanAndSpread found;
  for (const double value : values) found.mean += value / n;
  if (values.size() == 1) return found;
  double squares = 0;
  for (const double value : values) squares += (value - found.mean) * (value - found.mean);
  found.deviation = std::sqrt(squares / (n - 1));
  found.error = found.deviation / std::sqrt(n);
  return found;
}
inline MeanAndSpread mean_and_spread(const std::vector<Time>& times) {
  std::vector<double> values;
  for (const Time time : times) values.push_back(seconds(time));
  return mean_and_spread(values);
}

}  // namespace orrery
