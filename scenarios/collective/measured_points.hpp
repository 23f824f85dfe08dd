#pragma once
// A measured log's samples as points to compare with. Samples are whatever an importer gives: this
// folder knows none of them.

#include <string>
#include <variant>
#include <vector>

#include "scenarios/collective/collective_request.hpp"

namespace orrery::scenarios {

/// Those that are times of a size. Errors  none is: `LOG: has no times of collectives` (InputError)
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
