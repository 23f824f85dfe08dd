#pragma once
// Helpers shared by the readers of measured tables.

#include <string>
#include <string_view>

#include "sim/input/csv.hpp"

namespace orrery::scenarios {

inline constexpr double seconds_per_microsecond = 1e-6;

inline std::string cell_text(const Row& row, std::string_view column) {
  return std::string{row.text(column)};
}

inline bool mentions(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

}  // namespace orrery::scenarios
