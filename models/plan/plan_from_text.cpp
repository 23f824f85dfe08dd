#include <fmt/format.h>

#include <algorithm>

#include "models/plan/fields.hpp"
#include "sim/errors.hpp"
#include "sim/input/text.hpp"

namespace orrery::models {
namespace {

/// The part of `text` before `separator`; removes it and the separator.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return head;
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

/// May a stack's own default differ from the value of a new plan?
bool stack_may_differ(const PlanField& field, const Plan& plan) {
  if (field.key == "zero") return plan.data > 1;
  return field.key == "sequence" && plan.tensor > 1;
}

Json value_of_key(std::string_view key, std::string_view text) {
  for (const PlanField& field : plan_fields()) {
    if (field.key == key) return field.json_of(text);
  }
  return scalar_of(text);  // an unknown key: read_plan refuses it and lists those that exist
}

}  // namespace

std::string to_text(const Plan& plan) {
  Plan plain;
  plain.stages.schedule = default_schedule(plan.stages.virtual_stages);
  // Whether embedding and head count as layers may depend on the software stack.
  const bool stack_decides = plan.chunks() > 1 && plan.stages.layers.empty();
  std::string text;
  for (const PlanField& field : plan_fields()) {
    const Json value = field.json(plan);
    const bool needed = value != field.json(plain) || field.flag == PlanField::Flag::always ||
                        stack_may_differ(field, plan) ||
                        (field.key == "embedding_counts" && stack_decides);
    if (value.is_null() || !needed) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", field.key, text_of(value));
  }
  return text;
}

Json plan_from_text(std::string_view text, std::string_view flag) {
  Json plan = Json::object();
  while (!text.empty()) {
    const std::string_view item = trimmed(take_until(text, ','));
    std::string_view value = item;
    const std::string key{trimmed(take_until(value, '='))};
    value = trimmed(value);
    if (key.empty() || value.empty()) {
      throw InputError{std::string{flag},
                       fmt::format("expected KEY=VALUE, found '{}'", printable(item, 60))};
    }
    if (plan.contains(key)) {
      throw InputError{std::string{flag}, fmt::format("{} is given twice", printable(key, 60))};
    }
    plan[key] = value_of_key(key, value);
  }
  return plan;
}

}  // namespace orrery::models
