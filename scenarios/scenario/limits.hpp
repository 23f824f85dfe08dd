#pragma once
// Limits of a training run as people write them: days and dollars.

#include <optional>
#include <string>
#include <string_view>

#include "sim/quantity.hpp"

namespace orrery::scenarios {

inline constexpr std::string_view days_form = "days or a time such as \"60\", \"60d\" or \"8w\"";
inline constexpr std::string_view dollars_form =
    "an amount such as \"5M\", \"$5M\" or \"$5,000,000\"";

/// "60" and "60d" are days, "8w" and "8 weeks" weeks, "2 months" twelfths of a year; hours and
/// shorter as any time. Nothing if it is malformed or not above 0. Longer than Time can hold: a
/// training run may take a year.
std::optional<double> parse_days(std::string_view text);

/// "5M", "$5M", "5000000", "$5,000,000". Nothing if it is malformed or not above 0.
std::optional<Money> parse_dollars(std::string_view text);

/// A probability as people write it: "0.9", "90%", "90".
/// Errors  not between 0 and 1: `--confidence: expected ..., found 'x'`
double read_confidence_flag(const std::string& text);

}  // namespace orrery::scenarios
