#include "scenarios/scenario/limits.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "sim/errors.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

/// "1,234,567" without its commas; nothing where they do not separate thousands.
std::optional<std::string> without_commas(std::string_view text) {
  constexpr std::size_t group = 3;
  const std::size_t whole = std::min(text.find_first_not_of("0123456789,"), text.size());
  if (text.substr(0, whole).find(',') == std::string_view::npos) return std::string{text};
  std::string digits;
  std::size_t length = 0, groups = 0;
  const auto closed = [&] { return groups == 0 ? length > 0 && length <= group : length == group; };
  for (std::size_t i = 0; i < whole; ++i) {
    if (text[i] != ',') {
      digits += text[i];
      ++length;
      continue;
    }
    if (!closed()) return std::nullopt;
    length = 0;
    ++groups;
  }
  if (!closed()) return std::nullopt;
  return digits.append(text.substr(whole));
}

}  // namespace

std::optional<double> parse_days(std::string_view text) {
  text = trimmed(text);
  constexpr double year = 365.25;
  constexpr std::array<std::pair<std::string_view, double>, 9> units{{{"", 1},
                                                                      {"d", 1},
                                                                      {"w", 7},
                                                                      {"week", 7},
                                                                      {"weeks", 7},
                                                                      {"month", year / 12},
                                                                      {"months", year / 12},
                                                                      {"year", year},
                                                                      {"years", year}}};
  double number = 0;
  const char* last = text.data() + text.size();
  if (text.find_first_of("0123456789.") != 0) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc{} || !std::isfinite(number) || number <= 0) return std::nullopt;
  const std::string_view unit = trimmed({end, static_cast<std::size_t>(last - end)});
  for (const auto& [word, days] : units) {
    if (unit == word) return number * days;
  }
  const std::optional<Time> time = parse_quantity<Time>(text);
  if (!time || time->count() <= 0) return std::nullopt;
  return seconds(*time) / seconds_per_day;
}

std::optional<Money> parse_dollars(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('$')) text = trimmed(text.substr(1));
  const std::optional<std::string> digits = without_commas(text);
  if (!digits) return std::nullopt;
  const std::optional<Money> money = parse_quantity<Money>("$" + *digits);
  return money && money->count() > 0 ? money : std::nullopt;
}

double read_confidence_flag(const std::string& text) {
  const std::string_view form = trimmed(text);
  const std::string_view digits = form.substr(0, form.find_last_not_of("% ") + 1);
  const auto number = number_in<double>(digits);
  const bool percentage = form.ends_with('%') || number.value_or(0) > 1;
  const double share = number.value_or(0) / (percentage ? 100 : 1);
  if (number && share > 0 && share < 1) return share;
  throw InputError{
      "--confidence",
      fmt::format("expected a probability between 0 and 1 such as 0.8 or 80%, found '{}'",
                  printable(text, 60))};
}

}  // namespace orrery::scenarios
