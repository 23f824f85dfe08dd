// orrery completion: a script that tells a shell what can follow.

#include <fmt/format.h>

#include <memory>

#include "hardware/catalogue.hpp"
#include "models/model/model.hpp"
#include "models/plan/fields.hpp"
#include "models/software/resolved_profile.hpp"
#include "scenarios/command/commands.hpp"
#include "scenarios/scenario.hpp"

namespace orrery::scenarios {

namespace {

std::string flags_of_command(const CLI::App& command) {
  std::string flags;
  for (const CLI::Option* each : command.get_options()) {
    for (const std::string& name : each->get_lnames()) flags += " --" + name;
  }
  return flags;
}

/// Commands below a command, then its flags.
std::string words_of_command(const CLI::App& command) {
  std::string words;
  for (const CLI::App* each : command.get_subcommands([](const CLI::App*) { return true; })) {
    words += each->get_name() + " ";
  }
  return words + flags_of_command(command);
}

std::string plan_keys() {
  std::string keys;
  for (const models::PlanField& each : models::plan_fields()) keys += fmt::format("{}= ", each.key);
  return keys;
}

/// For bash: COMP_WORDS are the words before the cursor. Names have letters, digits, - and . only.
std::string bash_completion() {
  CLI::App application;
  int unused = exit_done;
  add_every_command(application, unused);
  std::string commands, cases;
  for (const CLI::App* each : application.get_subcommands([](const CLI::App*) { return true; })) {
    commands += each->get_name() + " ";
    cases += fmt::format("    {}) words=\"{}\" ;;\n", each->get_name(), words_of_command(*each));
  }
  std::vector<std::string> clusters = hardware::Catalogue::clusters();
  for (std::string& each : hardware::Catalogue::nodes()) clusters.push_back(std::move(each));
  return fmt::format(R"bash(# eval "$(orrery completion bash)"
_orrery() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
  case "$before" in
    --model) words="{}" ;;
    --cluster) words="{}" ;;
    --software) words="{}" ;;
    --plan) words="{}" ;;
  esac
  if [[ -z "$words" && $COMP_CWORD -eq 1 ]]; then words="{}--help --version"; fi
  if [[ -z "$words" ]]; then case "${{COMP_WORDS[1]}}" in
{}  esac; fi
  if [[ "$before" == "${{COMP_WORDS[1]}}" ]]; then words="$words {}"; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _orrery orrery
)bash",
                     listed(models::model_names()), listed(clusters),
                     listed(models::software_names()), plan_keys(), commands, cases,
                     listed(scenario_names()));
}

}  // namespace

void add_completion(CLI::App& application, int& exit_code) {
  CLI::App& command =
      *application.add_subcommand("completion", "Print what a shell needs to complete commands");
  const auto shell = std::make_shared<std::string>();
  command.add_option("shell", *shell, "bash")->required()->check(CLI::IsMember({"bash"}));
  command.callback([shell, &exit_code] {
    fmt::print("{}", bash_completion());
    exit_code = exit_done;
  });
}

}  // namespace orrery::scenarios
