#pragma once
// Other values of a number, for tests that change one number after the other.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// Other values of a number: the first that the reader takes is tried, then the next.
inline std::vector<Json> others(const Json& value) {
  if (value.is_number_integer()) {
    const auto count = value.get<std::int64_t>();
    return {2 * count, count / 2, count + 1, count - 1};
  }
  if (value.is_number()) {
    const auto number = value.get<double>();
    return {number / 2, number * 1.25, number + 0.5, number - 0.1, 0.1};
  }
  const auto text = value.get<std::string>();
  const bool dollars = text[0] == '$';
  std::size_t used = 0;
  const double number = std::stod(text.substr(dollars ? 1 : 0), &used);
  const std::string unit = text.substr(used + (dollars ? 1 : 0));
  std::vector<Json> found;
  for (const double each : {2 * number, number / 2, number + 1}) {
    found.push_back((dollars ? "$" : "") + std::to_string(each) + unit);
  }
  return found;
}

}  // namespace orrery::scenarios
