#include "scenarios/scenario/tokens.hpp"

#include <array>
#include <charconv>
#include <utility>

#include "sim/input/text.hpp"

namespace orrery::scenarios {

std::optional<double> parse_tokens(std::string_view text) {
  text = trimmed(text);
  double number = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc{}) return std::nullopt;
  const auto bounded = [](double count) -> std::optional<double> {
    if (!(count > 0 && count <= most_tokens)) return std::nullopt;
    return count;
  };
  if (end == last) return bounded(number);
  constexpr std::array<std::pair<char, double>, 4> suffixes{
      {{'K', 1e3}, {'M', 1e6}, {'B', 1e9}, {'T', 1e12}}};
  for (const auto& [letter, factor] : suffixes) {
    if (end + 1 == last && *end == letter) return bounded(number * factor);
  }
  return std::nullopt;
}

}  // namespace orrery::scenarios
