#include "scenarios/command/question_flags.hpp"

#include <algorithm>
#include <filesystem>

#include "scenarios/command/terminal/repeated.hpp"

namespace orrery::scenarios {

namespace {

/// Whether `text` looks like a --set change (POINTER=VALUE) and is not an existing file.
bool is_change(const std::string& text) {
  std::error_code unreadable;
  return !text.empty() && text.front() == '/' && text.find('=') != std::string::npos &&
         !std::filesystem::exists(text, unreadable);
}

}  // namespace

void QuestionFlags::add_to(CLI::App& command) {
  command.add_option("scenario", scenario, "Scenario: a path, or a name (orrery show scenario)");
  add_flags_to(command);
}

void QuestionFlags::add_flags_to(CLI::App& command) {
  command.add_option("--model", parts.model, "Model: a config.json, or a name");
  command.add_option("--cluster", parts.cluster, "Cluster: a path, a name, or 'NODE x COUNT'");
  command.add_option("--plan", parts.plan,
                     "Plan: a path, or tensor=8,pipeline=16,... (orrery show plan-fields)");
  command.add_option("--software", parts.software, "Software profile: a path, or a name");
  command
      .add_option("--year", parts.year, "Year of the software: uses the profile as of that year")
      ->check(CLI::Range(2012, 2100));
  command.add_option("--site", site, "Site: a name (orrery show sites), or its numbers as JSON");
  repeated(
      *command.add_option("--set", changes,
                          "Changes one value of the scenario, by its JSON pointer; repeat the flag "
                          "for more: --set /cluster/nodes=64 --set /plan/zero=1. Values between "
                          "commas make a table in simulate: --set /plan/tensor=2,4,8"))
      .type_name("POINTER=VALUE");
}

ScenarioRequest QuestionFlags::request() const {
  if (scenario && is_change(*scenario)) throw second_change(*scenario);
  ScenarioRequest made{.scenario = scenario, .parts = parts};
  if (site) made.changes.push_back(parse_change("/cluster/site=" + *site));
  for (const std::string& each : changes) made.changes.push_back(parse_change(each));
  return made;
}

std::pair<Scenario, std::vector<ValueList>> QuestionFlags::load_with_lists() const {
  const bool any = std::ranges::any_of(
      changes, [](const std::string& each) { return value_list(each).has_value(); });
  if (!any) return {load(), {}};
  QuestionFlags plain = *this;
  plain.changes.clear();
  Scenario base = plain.load();
  ListedChanges sorted = sorted_changes(base, changes);
  if (!sorted.single.empty()) base = base.replace(sorted.single);
  return {std::move(base), std::move(sorted.lists)};
}

}  // namespace orrery::scenarios
