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
#include "scenarios/command/ending.hpp"
#include "scenarios/command/heap.hpp"
#include "scenarios/command/repeated.hpp"

namespace orrery::scenarios {

namespace {

constexpr const char* version = "orrery 0.1.0";

struct NamedCommand {
  std::string_view name;
  void (*add)(CLI::App& application, int& exit_code);
};

/// In the order in which --help lists them.
constexpr NamedCommand commands[] = {
    {"simulate", add_simulate},
    {"show", add_show},
    {"validate", add_validate},
    {"plan", add_plan},
    {"buy", add_buy},
    {"train", add_train},
    {"fit", add_fit},
    {"calibrate", add_calibrate},
    {"execute", add_execute},
    {"scale", add_scale},
    {"contention", add_contention},
    {"collective", add_collective},
    {"compare", add_compare},
    {"check", add_check},
    {"checkpoint", add_checkpoint},
};

/// Adds only the command that `first` names, to save memory for the flags of the others; adds all
/// of them if it names none.
void add_commands(CLI::App& application, std::string_view first, int& exit_code) {
  const auto asked = std::ranges::find(commands, first, &NamedCommand::name);
  if (asked != std::end(commands)) return asked->add(application, exit_code);
  for (const NamedCommand& each : commands) each.add(application, exit_code);
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
  const std::string line = error.what(), hint = " (orrery --help lists the commands)";
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
  application.set_version_flag("--version", version);
  application.failure_message(CLI::FailureMessage::simple);
  int exit_code = exit_done;
  add_commands(application, argc > 1 ? argv[1] : "", exit_code);
  try {
    application.parse(argc, argv);
    return exit_code;
  } catch (const CLI::ParseError& error) {
    return usage(application, error);
  }
}

}  // namespace

}  // namespace orrery::scenarios

int main(int argc, char** argv) {
  using namespace orrery;
  scenarios::prepare_heap();
  scenarios::hold_standard_streams();
  try {
    const int exit_code = scenarios::run(argc, argv);
    if (exit_code != scenarios::exit_output_failed) scenarios::flush_output();
    std::_Exit(exit_code);  // skips destructors: the system frees all memory at once
  } catch (const std::exception& error) {
    return scenarios::report_failure(scenarios::failure_of(error),
                                     scenarios::wants_json(argc, argv));
  }
}
