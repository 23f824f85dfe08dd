// orrery show plan-fields: what each field of a plan means, by default and in values, as its row
// states it (models/plan/fields.hpp).

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "models/data/data_lane.hpp"
#include "models/plan/fields.hpp"
#include "scenarios/command/show/catalogue_tables.hpp"
#include "scenarios/command/terminal/terminal.hpp"
#include "scenarios/report/style.hpp"

namespace orrery::scenarios {

namespace {

using models::PlanField;
using PlanFields = std::vector<const PlanField*>;

constexpr std::size_t key_columns = 26;  // of a line: a key, and blanks; a longer one has its own

/// All fields, or the one of that name.
PlanFields plan_fields_named(const std::optional<std::string>& name) {
  PlanFields found;
  std::vector<std::string> known;
  for (const PlanField& field : models::plan_fields()) {
    if (!name || field.key == *name) found.push_back(&field);
    known.emplace_back(field.key);
  }
  if (!found.empty()) return found;
  throw InputError{fmt::format("show plan-fields: unknown '{}'; known: {}", *name, listed(known))};
}

PlanFields in_group(const PlanFields& fields, PlanField::Group group) {
  PlanFields found;
  std::ranges::copy_if(fields, std::back_inserter(found),
                       [&](const PlanField* field) { return field->group == group; });
  return found;
}

/// The key, then the meaning, the values and the default, as wide as the terminal.
std::string lines_of(const PlanField& field, const Terminal& shown) {
  const std::size_t width =
      std::max<std::size_t>(static_cast<std::size_t>(shown.width), 2 * key_columns) - key_columns;
  const std::string values = fmt::format("{}; default {}", field.accepted(), field.default_text());
  std::string text, key{field.key};
  if (key.size() + 2 >= key_columns) text = fmt::format("  {}\n", std::exchange(key, {}));
  const auto add = [&](std::string_view sentence, Tone tone) {
    for (const std::string& line : wrapped(sentence, width)) {
      text += fmt::format("  {:<{}}{}\n", key, key_columns - 2, toned(line, tone, shown.colour));
      key.clear();
    }
  };
  add(field.meaning, Tone::plain);
  add(values, Tone::faint);
  return text;
}

std::string field_lines(const PlanFields& fields) {
  const Terminal shown = terminal();
  std::string text;
  for (const auto& [group, word] : models::plan_group_words) {
    const PlanFields rows = in_group(fields, group);
    if (rows.empty()) continue;
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n", toned(word, Tone::bold, shown.colour));
    for (const PlanField* field : rows) text += lines_of(*field, shown);
  }
  return text;
}

std::string field_tables(const PlanFields& fields) {
  std::string text;
  for (const auto& [group, word] : models::plan_group_words) {
    const PlanFields rows = in_group(fields, group);
    if (rows.empty()) continue;
    text += fmt::format("{}**{}{}**\n\n| field | means | values | default |\n|---|---|---|---|\n",
                        text.empty() ? "" : "\n", static_cast<char>(word.front() - 'a' + 'A'),
                        word.substr(1));
    for (const PlanField* field : rows) {
      text += fmt::format("| `{}` | {} | {} | {} |\n", field->key, field->meaning,
                          field->accepted(), field->default_text());
    }
  }
  return text;
}

Json field_list(const PlanFields& fields) {
  Json list = Json::array();
  for (const PlanField* field : fields) {
    list.push_back({{"field", field->key},
                    {"group", word_of(models::plan_group_words, field->group)},
                    {"meaning", field->meaning},
                    {"values", field->accepted()},
                    {"default", field->default_text()}});
  }
  return list;
}

}  // namespace

Shown show_plan_fields(const std::optional<std::string>& name, FieldsAs format) {
  const PlanFields fields = plan_fields_named(name);
  return {format == FieldsAs::markdown ? field_tables(fields) : field_lines(fields),
          field_list(fields)};
}

Shown show_data_formats(const std::optional<std::string>& name) {
  TextTable table{{"<format", "<of", "stored", "decoded", "a core decodes", "<"}};
  Json list = Json::array();
  std::string text;
  const auto bytes = [](double count) { return fmt::format("{:.6g} B", count); };
  for (const models::DataFormat& each : models::data_formats()) {
    if (name && each.name != models::data_format(*name).name) continue;
    const bool decodes = each.per_core > 0;
    table.add({each.name, each.kind == "text" ? "token" : each.kind, bytes(each.bytes),
               bytes(each.decoded_bytes), decodes ? fmt::format("{:g}/s", each.per_core) : "-",
               each.pixels > 0 ? fmt::format("of {:g} pixels", each.pixels) : ""});
    list.push_back({{"format", each.name},
                    {"kind", each.kind},
                    {"bytes", each.bytes},
                    {"decoded_bytes", each.decoded_bytes},
                    {"decoded_per_core_s", decodes ? Json(each.per_core) : Json(nullptr)},
                    {"pixels", each.pixels > 0 ? Json(each.pixels) : Json(nullptr)},
                    {"source", each.source}});
    if (name) text = each.source + "\n";
  }
  return {table.text(terminal().colour) + text, list};
}

}  // namespace orrery::scenarios
