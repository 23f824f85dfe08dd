#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "models/plan/plan.hpp"
#include "sim/errors.hpp"
#include "sim/input/text.hpp"

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

/// Digits with a point between or before them, and perhaps an exponent; not the number in front of
/// a unit.
std::optional<double> decimal_from(std::string_view text) {
  constexpr std::string_view in_numbers = "0123456789.";
  const bool digits = !text.empty() && in_numbers.find(text.front()) != in_numbers.npos &&
                      text.find_first_not_of("0123456789.e+-") == text.npos;
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

std::string text_of(const Json& value) {
  if (value.is_array()) {
    std::string list;
    for (const Json& each : value) list += (list.empty() ? "" : ":") + text_of(each);
    return list;
  }
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());  // "25 MB"
  return text;
}

/// What distinguishes plans; written even where it is the default.
bool always_said(std::string_view key) {
  constexpr std::array keys{"tensor",       "pipeline", "data",      "micro_batch",
                            "global_batch", "seq_len",  "precision", "recompute"};
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

std::string to_text(const Plan& plan) {
  Json usual = to_json(Plan{});
  if (plan.virtual_stages > 1) usual["schedule"] = "interleaved-1f1b";
  // A stack may have a rule of its own for the ends of a pipeline.
  if (plan.chunks() > 1 && plan.stage_layers.empty()) usual.erase("embedding_counts");
  const Json written = to_json(plan);
  std::string text;
  for (const auto& [key, value] : written.items()) {
    if (!always_said(key) && usual.contains(key) && usual[key] == value) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, text_of(value));
  }
  return text;
}

Json plan_from_text(std::string_view text) {
  Json plan = Json::object();
  while (!text.empty()) {
    const std::string_view item = take_until(text, ',');
    std::string_view value = item;
    const std::string key{take_until(value, '=')};
    if (key.empty() || value.empty()) {
      throw InputError{flag_name,
                       fmt::format("expected KEY=VALUE, found '{}'", printable(item, 60))};
    }
    if (plan.contains(key)) {
      throw InputError{flag_name, fmt::format("{} is given twice", printable(key, 60))};
    }
    plan[key] = value_from(key, value);
  }
  return plan;
}

}  // namespace orrery::models
