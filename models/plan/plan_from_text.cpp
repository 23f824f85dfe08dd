#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "models/plan.hpp"
#include "sim/errors.hpp"

namespace orrery::models {
namespace {

constexpr const char* flag_name = "--plan";

/// The part of `text` before `separator`; removes it and the separator.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return head;
}

/// Digits with a point between or before them; not the number in front of a unit.
std::optional<double> decimal_from(std::string_view text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789.") == text.npos;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!digits || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// A number, true or false, or else a word.
Json scalar_from(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size()) return number;
  if (const auto share = decimal_from(text)) return *share;
  if (text == "true") return true;
  if (text == "false") return false;
  return std::string{text};
}

Json value_from(std::string_view key, std::string_view text) {
  if (key != "stage_layers") return scalar_from(text);
  Json list = Json::array();
  while (!text.empty()) list.push_back(scalar_from(take_until(text, ':')));
  return list;
}

}  // namespace

Json plan_from_text(std::string_view text) {
  Json plan = Json::object();
  while (!text.empty()) {
    const std::string_view item = take_until(text, ',');
    std::string_view value = item;
    const std::string key{take_until(value, '=')};
    if (key.empty() || value.empty()) {
      throw InputError{flag_name, fmt::format("expected KEY=VALUE, found '{}'", item)};
    }
    if (plan.contains(key)) throw InputError{flag_name, fmt::format("{} is given twice", key)};
    plan[key] = value_from(key, value);
  }
  return plan;
}

}  // namespace orrery::models
