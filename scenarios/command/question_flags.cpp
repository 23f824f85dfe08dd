#include "scenarios/command/question_flags.hpp"

namespace orrery::scenarios {

void QuestionFlags::add_to(CLI::App& command) {
  command.add_option("scenario", scenario, "Scenario: a path, or a name (orrery show scenario)");
  command.add_option("--model", parts.model, "Model: a config.json, or a name");
  command.add_option("--cluster", parts.cluster, "Cluster: a path, a name, or 'NODE x COUNT'");
  command.add_option("--plan", parts.plan, "Plan: a path, or tensor=8,pipeline=16,...");
  command.add_option("--software", parts.software, "Software profile: a path, or a name");
  command.add_option("--set", changes, "POINTER=VALUE, repeatable: /cluster/nodes=64")
      ->take_all()
      ->allow_extra_args(false);
}

Scenario QuestionFlags::load() const {
  Scenario loaded = Scenario::load(scenario, parts);
  if (changes.empty()) return loaded;
  std::vector<std::pair<std::string, Json>> parsed;
  for (const std::string& each : changes) parsed.push_back(parse_change(each));
  return loaded.replace(parsed);
}

}  // namespace orrery::scenarios
