#pragma once
// A flag's whole number, checked before CLI11 converts it: it takes -1 for 2^64 - 1.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>

#include "sim/input/text.hpp"

namespace orrery::scenarios {

/// What is wrong with a number of 64 bits without a sign; empty: nothing.
/// Errors  `--seed: expected a whole number from 0 to 18446744073709551615, found '-1'`
inline std::string wrong_whole_number(const std::string& text) {
  if (number_in<std::uint64_t>(text)) return {};
  return fmt::format("expected a whole number from 0 to {}, found '{}'",
                     std::numeric_limits<std::uint64_t>::max(), printable(text, 60));
}

}  // namespace orrery::scenarios
