// orrery completion: a script that tells a shell what can follow.

#include <fmt/format.h>

#include <memory>

#include "hardware/catalogue.hpp"
#include "models/model/model.hpp"
#include "models/plan/fields.hpp"
#include "models/software/resolved_profile.hpp"
#include "scenarios/command/commands.hpp"
#include "scenarios/scenario/scenario.hpp"

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

/// What completions know: words in the place of a name, and of each command.
struct CompletionWords {
  std::string models, clusters, software, plan_keys, scenarios, targets;
  CLI::App application;
  std::vector<const CLI::App*> commands;

  CompletionWords() {
    int unused = exit_done;
    add_every_command(application, unused);
    const CLI::App& all = application;
    commands = all.get_subcommands([](const CLI::App*) { return true; });
    std::vector<std::string> names = hardware::Catalogue::clusters();
    for (std::string& each : hardware::Catalogue::nodes()) names.push_back(std::move(each));
    models = listed(models::model_names());
    clusters = listed(names);
    software = listed(models::software_names());
    plan_keys = scenarios::plan_keys();
    scenarios = listed(scenario_names());
  }
};

/// For bash: COMP_WORDS are the words before the cursor. Names have letters, digits, - and . only.
std::string bash_completion() {
  const CompletionWords known;
  std::string commands, cases;
  for (const CLI::App* each : known.commands) {
    commands += each->get_name() + " ";
    cases += fmt::format("    {}) words=\"{}\" ;;\n", each->get_name(), words_of_command(*each));
  }
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
                     known.models, known.clusters, known.software, known.plan_keys, commands, cases,
                     known.scenarios);
}

/// Text between single quotes of a shell.
std::string single_quoted(std::string_view text) {
  std::string safe = "'";
  for (const char c : text) safe += c == '\'' ? std::string{"'\\''"} : std::string(1, c);
  return safe + "'";
}

/// The first sentence of a description, for a list beside the names.
std::string first_words(const std::string& description) {
  const std::size_t end = description.find_first_of(":;(");
  std::string text = description.substr(0, end);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

/// For zsh: flags with their descriptions.
std::string zsh_completion() {
  const CompletionWords known;
  std::string commands, cases;
  const auto described = [](const std::string& name, const std::string& description) {
    std::string safe = first_words(description);
    std::erase(safe, ':');
    return " " + single_quoted(name + ":" + safe);
  };
  for (const CLI::App* each : known.commands) {
    commands += described(each->get_name(), each->get_description());
    std::string flags;
    for (const CLI::App* below : each->get_subcommands([](const CLI::App*) { return true; })) {
      flags += described(below->get_name(), below->get_description());
    }
    for (const CLI::Option* option : each->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        flags += described("--" + name, option->get_description());
      }
    }
    cases += fmt::format("    {}) flags=({} ) ;;\n", each->get_name(), flags);
  }
  return fmt::format(R"zsh(#compdef orrery
# Save as _orrery in a folder of $fpath, or: source <(orrery completion zsh)
_orrery() {{
  local -a commands flags
  local before="${{words[CURRENT-1]}}"
  case "$before" in
    --model) compadd -- {}; _files; return ;;
    --cluster) compadd -- {}; _files; return ;;
    --software) compadd -- {}; _files; return ;;
    --plan) compadd -S '' -- {}; _files; return ;;
  esac
  if (( CURRENT == 2 )); then
    commands=({} )
    _describe 'command' commands
    compadd -- --help --version
    return
  fi
  case "${{words[2]}}" in
{}  esac
  if (( CURRENT == 3 )); then compadd -- {}; fi
  _describe 'flag' flags
  _files
}}
if [[ "$funcstack[1]" == _orrery ]]; then _orrery "$@"; else compdef _orrery orrery; fi
)zsh",
                     known.models, known.clusters, known.software, known.plan_keys, commands, cases,
                     known.scenarios);
}

/// For fish: one line for each command and flag.
std::string fish_completion() {
  const CompletionWords known;
  std::string text = "# orrery completion fish > ~/.config/fish/completions/orrery.fish\n";
  for (const CLI::App* each : known.commands) {
    text += fmt::format("complete -c orrery -n __fish_use_subcommand -a {} -d {}\n",
                        each->get_name(), single_quoted(each->get_description()));
  }
  for (const CLI::App* each : known.commands) {
    const std::string here =
        fmt::format("complete -c orrery -n '__fish_seen_subcommand_from {}'", each->get_name());
    for (const CLI::App* below : each->get_subcommands([](const CLI::App*) { return true; })) {
      text += fmt::format("{} -a {} -d {}\n", here, below->get_name(),
                          single_quoted(below->get_description()));
    }
    for (const CLI::Option* option : each->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        const std::string* values = name == "model"      ? &known.models
                                    : name == "cluster"  ? &known.clusters
                                    : name == "software" ? &known.software
                                    : name == "plan"     ? &known.plan_keys
                                                         : nullptr;
        const bool takes_value = option->get_items_expected_max() > 0;
        text += fmt::format("{} -l {}{}{} -d {}\n", here, name, takes_value ? " -r" : "",
                            values ? " -a " + single_quoted(*values) : "",
                            single_quoted(first_words(option->get_description())));
      }
    }
    if (each->get_option_no_throw("scenario") != nullptr) {
      text += fmt::format("{} -a {}\n", here, single_quoted(known.scenarios));
    }
  }
  return text;
}

}  // namespace

void add_completion(CLI::App& application, int& exit_code) {
  CLI::App& command =
      *application.add_subcommand("completion", "Print what a shell needs to complete commands");
  const auto shell = std::make_shared<std::string>();
  command.add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command.callback([shell, &exit_code] {
    fmt::print("{}", *shell == "bash"  ? bash_completion()
                     : *shell == "zsh" ? zsh_completion()
                                       : fish_completion());
    exit_code = exit_done;
  });
}

}  // namespace orrery::scenarios
