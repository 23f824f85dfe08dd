// What all fields of a plan have in common: their values in JSON, flags, table cells and titles,
// and the words that describe them.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "models/plan/fields.hpp"
#include "sim/input/text.hpp"

namespace orrery::models {
namespace {

/// A decimal number, perhaps with an exponent, if the whole text is one; not a number followed by a
/// unit.
std::optional<double> decimal_from(std::string_view text) {
  constexpr std::string_view in_numbers = "0123456789.";
  const bool digits = !text.empty() && in_numbers.find(text.front()) != in_numbers.npos &&
                      text.find_first_not_of("0123456789.e+-") == text.npos;
  return digits ? number_in<double>(text) : std::nullopt;
}

}  // namespace

Json scalar_of(std::string_view text) {
  if (const auto number = number_in<std::int64_t>(text)) return *number;
  if (const auto decimal = decimal_from(text)) return *decimal;
  if (text == "true") return true;
  if (text == "false") return false;
  return std::string{text};
}

void PlanField::read_value(const Node& given, Plan& plan) const {
  if (read) {
    read(given, plan);
  } else {
    value.read(given, plan, value);
  }
}

bool PlanField::is_set(const Plan& plan) const {
  static const Plan usual;
  const auto own = write ? write : value.write;
  return own(plan) != own(usual);
}

void PlanField::add_to_key(const Plan& plan, std::string& bytes) const {
  if (blocks == Blocks::same) return;
  if (blocks == Blocks::differ_where_set) {
    bytes.push_back(is_set(plan) ? '1' : '0');
  } else if (value.key != nullptr) {
    value.key(plan, bytes);
  } else {
    bytes += (write ? write : value.write)(plan).dump();
  }
}

Json PlanField::json(const Plan& plan) const {
  if (by_default == Default::omitted && !is_set(plan)) return nullptr;
  return write ? write(plan) : value.write(plan);
}

std::string PlanField::text(const Plan& plan) const {
  const Json own = json(plan);
  return own.is_string() ? own.get<std::string>() : own.dump();
}

std::string PlanField::in_cell(const Plan& plan) const {
  return title == Title::addition ? in_title(plan) : text(plan);
}

std::string PlanField::in_title(const Plan& plan) const {
  const bool optional = title == Title::addition || title == Title::degree_where_used;
  if (title_label.empty() || (optional && json(plan) == json(Plan{}))) return {};
  if (value.kind == PlanValue::Kind::flag) return std::string{title_label};
  return fmt::format("{}{}{}", title_label, title_label.back() == '-' ? "" : " ", text(plan));
}

Json PlanField::json_of(std::string_view text) const {
  const bool word = !text.empty() && text.find_first_not_of("0123456789:") != text.npos;
  using Kind = PlanValue::Kind;
  const bool factors = value.kind == Kind::factor && text.find(':') != text.npos &&
                       text.find_first_not_of("0123456789.:") == text.npos;
  const bool several =
      value.kind == Kind::word_list || (value.kind == Kind::counts && !word) || factors;
  if (!several) return scalar_of(text);
  Json list = Json::array();
  if (text.empty()) return list;
  if (text.ends_with(':')) text.remove_suffix(1);
  for (const std::string_view part : split(text, ':')) list.push_back(scalar_of(part));
  return list;
}

Json PlanField::json_of_cell(std::string_view text) const {
  return value.kind == PlanValue::Kind::flag ? Json(text == "yes") : json_of(text);
}

namespace {

/// "a, b or c".
std::string one_of(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

std::string words_for(const PlanValue& value) {
  using Kind = PlanValue::Kind;
  switch (value.kind) {
    case Kind::count:
      return fmt::format("{} to {}", value.least, value.most);
    case Kind::flag:
      return "true or false";
    case Kind::word:
      return one_of(value.words());
    case Kind::word_list:
      return fmt::format("some of {}", fmt::join(value.words(), ", "));
    case Kind::share:
      return "a number above 0, at most 1";
    case Kind::factor:
      return "a number";
    case Kind::bytes:
      return "a size, 25 MB";
    case Kind::counts:
      return fmt::format("numbers from {} to {}", value.least, value.most);
  }
  throw ContractError{"a kind of plan value has no words"};
}

/// The member of a new Plan, as --plan would state it.
std::string stated_default(const PlanValue& value) {
  const Plan usual;
  ensure(value.write != nullptr, "a plan field states no default");
  const Json written = value.write(usual);
  if (written.is_number_float()) return fmt::format("{:g}", written.get<double>());
  if (!written.is_array()) {
    return written.is_string() ? written.get<std::string>() : written.dump();
  }
  const auto words = written.get<std::vector<std::string>>();
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, ":"));
}

}  // namespace

std::string PlanField::accepted() const {
  return words_for(value) + std::string{other_values};
}

std::string PlanField::default_text() const {
  if (!default_words.empty()) return std::string{default_words};
  return stated_default(value) + (stack == Stack::has_default ? ", or the stack's" : "");
}

const PlanField& plan_field(std::string_view key) {
  const auto fields = plan_fields();
  const auto found = std::ranges::find(fields, key, &PlanField::key);
  ensure(found != fields.end(), "a plan has no such field");
  return *found;
}

namespace {

std::string titles(const Plan& plan, bool with_choices) {
  using Title = PlanField::Title;
  std::string text;
  for (const PlanField& field : plan_fields()) {
    if (field.title == Title::choice && !with_choices) continue;
    const std::string part = field.in_title(plan);
    if (part.empty()) continue;
    const bool joined = field.title == Title::addition;
    text += text.empty() ? part : (joined ? " " : " · ") + part;
  }
  return text;
}

}  // namespace

std::string degrees_of(const Plan& plan) {
  return titles(plan, false);
}

std::string title_of(const Plan& plan) {
  return titles(plan, true);
}

}  // namespace orrery::models
