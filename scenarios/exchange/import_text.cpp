// An import as JSON, and as a table for people.

#include <fmt/format.h>

#include <algorithm>

#include "models/plan/fields.hpp"
#include "scenarios/exchange/import.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::scenarios {

namespace {

using Use = ImportedOption::Use;

Json options_json(const ImportedLaunch& imported, Use use, const char* why) {
  Json list = Json::array();
  for (const ImportedOption& each : imported.options) {
    if (each.use != use) continue;
    list.push_back(
        {{"option", each.option}, {"value", each.value}, {"place", each.place}, {why, each.says}});
  }
  return list;
}

std::int64_t options_by(const ImportedLaunch& imported, Use use) {
  return std::ranges::count(imported.options, use, &ImportedOption::use);
}

std::string option_rows(const ImportedLaunch& imported, Use use) {
  std::size_t widest = 0, widest_value = 0;
  for (const ImportedOption& each : imported.options) {
    if (each.use != use) continue;
    widest = std::max(widest, std::min<std::size_t>(44, each.option.size()));
    widest_value = std::max(widest_value, std::min<std::size_t>(20, each.value.size()));
  }
  std::string text;
  for (const ImportedOption& each : imported.options) {
    if (each.use != use) continue;
    const std::string value =
        each.value.size() > 20 ? each.value.substr(0, 17) + "..." : each.value;
    text +=
        fmt::format("  {:<{}}  {:<{}}  {}\n", each.option, widest, value, widest_value, each.says);
  }
  return text;
}

std::string plan_text_of(const Json& plan) {
  std::string text;
  for (const auto& [key, value] : plan.items()) {
    std::string shown;
    if (value.is_array()) {
      for (const Json& each : value) {
        shown +=
            (shown.empty() ? "" : ":") + (each.is_string() ? each.get<std::string>() : each.dump());
      }
    } else {
      shown = value.is_string() ? value.get<std::string>() : value.dump();
    }
    std::erase(shown, ' ');
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, shown);
  }
  return text;
}

std::string part_name(const Json& part, const char* missing) {
  if (part.is_null()) return missing;
  return part.is_string() ? part.get<std::string>() : part.value("name", "of the file");
}

}  // namespace

Json to_json(const ImportedLaunch& imported) {
  return {{"files", imported.files},
          {"tool", or_null(imported.tool)},
          {"model", imported.model},
          {"cluster", imported.cluster},
          {"nodes", imported.nodes ? Json(*imported.nodes) : Json(nullptr)},
          {"gpus", imported.gpus ? Json(*imported.gpus) : Json(nullptr)},
          {"plan", imported.plan},
          {"software", imported.software},
          {"collectives", imported.collectives},
          {"run", imported.run},
          {"used", options_json(imported, Use::used, "says")},
          {"without_effect", options_json(imported, Use::without_effect, "why")},
          {"not_understood", options_json(imported, Use::not_understood, "why")},
          {"counts",
           {{"used", options_by(imported, Use::used)},
            {"without_effect", options_by(imported, Use::without_effect)},
            {"not_understood", options_by(imported, Use::not_understood)}}},
          {"notes", imported.notes}};
}

std::string text_of(const ImportedLaunch& imported) {
  std::string text = fmt::format(
      "{} ({})\n  model     {}\n  cluster   {}\n  software  {}\n  plan      {}\n",
      fmt::join(imported.files, ", "), imported.tool.empty() ? "launcher" : imported.tool,
      part_name(imported.model, "not stated: --model"),
      imported.cluster.is_null() && imported.gpus
          ? fmt::format("{} GPUs of a kind that is not stated: --cluster", *imported.gpus)
          : part_name(imported.cluster, "not stated: --cluster"),
      part_name(imported.software, "not stated"), plan_text_of(imported.plan));
  const std::pair<Use, const char*> tables[] = {
      {Use::used, "Used"},
      {Use::not_understood, "Not understood"},
      {Use::without_effect, "Without effect on time and memory"}};
  for (const auto& [use, title] : tables) {
    const std::int64_t count = options_by(imported, use);
    if (count > 0) text += fmt::format("\n{}: {}\n{}", title, count, option_rows(imported, use));
  }
  if (!imported.notes.empty()) text += "\nNotes\n";
  for (const std::string& note : imported.notes) text += "  " + note + "\n";
  return text;
}

}  // namespace orrery::scenarios
