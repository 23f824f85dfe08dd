#pragma once
// Numbers of tokens as people write them.

#include <optional>
#include <string_view>

namespace orrery::scenarios {

/// Ten thousand times what the largest models were trained on.
inline constexpr double most_tokens = 1e18;
inline constexpr std::string_view tokens_form =
    "a number of tokens above 0, at most 1e18, such as \"300B\"";

/// Parses "300B", "15.6T", "1e12", "2048"; nothing if malformed or out of these bounds. K, M, B and
/// T are 10^3 to 10^12.
std::optional<double> parse_tokens(std::string_view text);

}  // namespace orrery::scenarios
