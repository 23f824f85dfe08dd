// orrery: questions about training clusters, from a shell.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/ending.hpp"
#include "scenarios/command/terminal/heap.hpp"
#include "scenarios/command/terminal/repeated.hpp"
#include "scenarios/exchange/suggestion.hpp"
#include "scenarios/version.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

struct NamedCommand {
  std::string_view name;
  void (*add)(CLI::App& application, int& exit_code);
  const char* examples;  // the end of its --help
};

/// In the order in which --help lists them.
constexpr NamedCommand commands[] = {
    {"simulate", add_simulate,
     "  orrery simulate llama3-8b-8-h100\n  orrery simulate --model llama3-8b --cluster \"dgx-h100 "
     "x 4\" --plan tensor=4\n  orrery simulate train.sh --cluster \"dgx-h100 x 8\""},
    {"show", add_show, "  orrery show gpus h100\n  orrery show plan-fields"},
    {"validate", add_validate,
     "  orrery validate scenarios/validation/runs.csv --by software\n  orrery validate "
     "scenarios/validation/other_simulators.csv"},
    {"plan", add_plan,
     "  orrery plan --model llama3-8b --cluster \"dgx-h100 x 4\" --global-batch 256 --seq-len "
     "8192"},
    {"buy", add_buy, "  orrery buy --model llama3-8b --tokens 1T --deadline 30d"},
    {"train", add_train, "  orrery train llama3-405b-16384-h100 --tokens 15.6T --deadline 90d"},
    {"fit", add_fit,
     "  orrery fit software --from steps.csv --out mine.json\n  orrery fit curves --from "
     "kernels.csv"},
    {"calibrate", add_calibrate, "  orrery calibrate --out machine.json"},
    {"execute", add_execute, "  orrery execute gpt-dp2 --explain"},
    {"scale", add_scale, "  orrery scale llama3-8b-8-h100 --gpus 8:1024:x2"},
    {"sweep", add_sweep,
     "  orrery sweep llama3-8b-8-h100 --vary /plan/micro_batch=1,2,4 --vary "
     "/plan/recompute=none,full --store f.jsonl"},
    {"merge", add_merge, "  orrery merge part-1.jsonl part-2.jsonl --store whole.jsonl"},
    {"contention", add_contention, "  orrery contention gpt3-175b-1024-a100"},
    {"collective", add_collective,
     "  orrery collective --cluster \"dgx-h100 x 4\" --op all_reduce --sizes 8B:1GiB:2"},
    {"compare", add_compare,
     "  orrery compare llama3-8b-8-h100 rank0.pt.trace.json.gz rank1.pt.trace.json.gz\n  orrery "
     "compare llama3-8b-8-h100 megatron.log --fit mine\n  orrery compare predicted.json "
     "measured.json"},
    {"diagnose", add_diagnose,
     "  orrery diagnose ib_write_bw_mlx5_*.log\n  orrery diagnose trace-rank*.json.gz --json"},
    {"import", add_import,
     "  orrery import train.sh job.sbatch --cluster dgx-h100 --out mine.json"},
    {"export", add_export,
     "  orrery export llama3-70b-64-h100 --to megatron --to slurm --out launch"},
    {"check", add_check, "  orrery check scenarios/claims/articles.json"},
    {"checkpoint", add_checkpoint, "  orrery checkpoint verify run/checkpoints"},
    {"report", add_report,
     "  orrery simulate llama3-70b-64-h100 --timeline --json > step.json\n  orrery report "
     "step.json --out step.html"},
    {"schema", add_schema, "  orrery schema\n  orrery schema scenario > scenario.schema.json"},
    {"man", add_man, "  orrery man > orrery.1\n  orrery man | man -l -"},
    {"completion", add_completion,
     "  eval \"$(orrery completion bash)\"\n  orrery completion zsh > ~/.zfunc/_orrery"},
};

/// What `orrery` alone prints.
constexpr const char* greeting =
    R"(Orrery predicts what training costs on a cluster: time, memory, energy, money.

Try
  orrery simulate llama3-8b-8-h100
  orrery simulate --model llama3-8b --cluster "dgx-h100 x 4" --plan tensor=4
  orrery plan --model llama3-8b --cluster "dgx-h100 x 4" --global-batch 256 --seq-len 8192
  orrery import train.sh --cluster dgx-h100
  orrery show models

`orrery --help` lists the commands, `orrery COMMAND --help` their flags with examples.
)";

/// The examples of a command below another, such as `fit software`.
std::string examples_of(const NamedCommand& command, const std::string& below) {
  std::string found;
  for (const std::string_view line : split(command.examples, '\n')) {
    if (line.starts_with(fmt::format("  orrery {} {}", command.name, below))) {
      found += fmt::format("\n{}", line);
    }
  }
  return found;
}

void add_command_with_examples(CLI::App& application, const NamedCommand& command, int& exit_code) {
  command.add(application, exit_code);
  CLI::App& added = *application.get_subcommand(std::string{command.name});
  const std::string own = added.get_footer();
  added.footer(fmt::format("{}{}Examples:\n{}", own, own.empty() ? "" : "\n\n", command.examples));
  for (CLI::App* each : added.get_subcommands([](const CLI::App*) { return true; })) {
    each->footer("Examples:" + examples_of(command, each->get_name()));
  }
}

/// Adds only the command that `first` names, to save memory for the flags of the others; adds all
/// of them if it names none.
void add_commands(CLI::App& application, std::string_view first, int& exit_code) {
  const auto asked = std::ranges::find(commands, first, &NamedCommand::name);
  if (asked == std::end(commands)) return add_every_command(application, exit_code);
  add_command_with_examples(application, *asked, exit_code);
}

/// The word that stands where a command should.
std::string first_word(const CLI::App& application) {
  const std::vector<std::string> left = application.remaining();
  return left.empty() ? std::string{} : left.front();
}

/// The command nearest to the word that stands in its place; empty: one was given, or none is near.
std::string command_meant(const CLI::App& application) {
  if (!application.get_subcommands().empty()) return {};
  std::vector<std::string_view> names;
  for (const NamedCommand& each : commands) names.push_back(each.name);
  return std::string{nearest(first_word(application), names)};
}

/// Prints help or the version, or throws InputError: CLI11 reports --help and --version as errors
/// too.
int usage(const CLI::App& application, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    std::ostringstream text;
    const int exit_code = application.exit(error, text, text);
    fmt::print("{}", text.str());
    return exit_code;
  }
  std::string line = error.what();
  const std::string hint = " (orrery --help lists the commands)";
  if (const std::string meant = command_meant(application); !meant.empty()) {
    throw InputError{fmt::format("unknown command '{}'; did you mean '{}'?{}",
                                 first_word(application), meant, hint)};
  }
  const std::string first = first_word(application);
  if (application.get_subcommands().empty() && !first.empty() && !first.starts_with('-')) {
    throw InputError{fmt::format("unknown command '{}'{}", first, hint)};
  }
  const std::size_t colon = line.find(": ");
  const bool more = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) &&
                    colon != std::string::npos && line.find(": /") == colon;
  if (more && line.find('=') != std::string::npos) throw second_change(line.substr(colon + 2));
  if (line.rfind("--", 0) != 0 || colon == std::string::npos) throw InputError{line + hint};
  throw InputError{line.substr(0, colon), line.substr(colon + 2) + hint};
}

/// Whether --json was given. Searches argv itself, because parsing the flags may be what failed.
bool wants_json(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc,
                     [](const char* word) { return std::string_view{word} == "--json"; });
}

int run(int argc, char** argv) {
  CLI::App application{
      "Orrery predicts what training costs on a cluster: time, memory, energy, "
      "money."};
  application.require_subcommand(1);
  application.set_version_flag("-V,--version", fmt::format("orrery {}", version_number));
  application.failure_message(CLI::FailureMessage::simple);
  int exit_code = exit_done;
  if (argc == 1) {
    fmt::print("{}", greeting);
    return exit_code;
  }
  if (argc == 2 && std::string_view{argv[1]} == "version") {
    fmt::print("orrery {}\n", version_number);
    return exit_code;
  }
  set_asking(application);
  add_commands(application, argc > 1 ? argv[1] : "", exit_code);
  try {
    application.parse(argc, argv);
    return exit_code;
  } catch (const CLI::ParseError& error) {
    return usage(application, error);
  }
}

}  // namespace

void add_every_command(CLI::App& application, int& exit_code) {
  for (const NamedCommand& each : commands) add_command_with_examples(application, each, exit_code);
}

}  // namespace orrery::scenarios

int main(int argc, char** argv) {
  using namespace orrery;
  scenarios::prepare_heap();
  scenarios::hold_standard_streams();
  try {
    const int exit_code = scenarios::run(argc, argv);
    if (exit_code != scenarios::exit_output_failed) scenarios::flush_output();
    std::_Exit(exit_code);  // skips destructors: the system frees all memory at once
  } catch (const InputError& error) {
    const bool json = scenarios::wants_json(argc, argv);
    std::string problem = scenarios::suggested(std::string{error.problem()});
    if (!json) problem = scenarios::without_long_list(problem);
    const InputError better = error.place().empty()
                                  ? InputError{problem}
                                  : InputError{std::string{error.place()}, problem};
    return scenarios::report_failure(scenarios::failure_of(better), json);
  } catch (const std::exception& error) {
    return scenarios::report_failure(scenarios::failure_of(error),
                                     scenarios::wants_json(argc, argv));
  }
}
