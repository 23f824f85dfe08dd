#pragma once
// Converts a measured log's samples to points to compare with. A template, because this folder must
// not include the importers.

#include <string>
#include <variant>
#include <vector>

#include "scenarios/collective/collective_request.hpp"

namespace orrery::scenarios {

/// The samples that are a time at a size. Errors  none: `LOG: has no times of collectives`
///                                                (InputError)
template <class Samples>
std::vector<MeasuredPoint> measured_points(const Samples& samples, const std::string& log) {
  std::vector<MeasuredPoint> points;
  for (const auto& sample : samples) {
    const Time* const time = std::get_if<Time>(&sample.value);
    if (!time || !sample.size) continue;
    points.push_back({.operation = sample.quantity,
                      .size = *sample.size,
                      .time = *time,
                      .ranks = sample.ranks.value_or(0),
                      .device = sample.device,
                      .place = sample.place});
  }
  if (points.empty()) throw InputError{log, "has no times of collectives"};
  return points;
}

}  // namespace orrery::scenarios
