// orrery: questions about training clusters, from a shell.

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/heap.hpp"
#include "sim/errors.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

constexpr const char* version = "orrery 0.1.0";

/// One line on stderr, whatever is in the message.
void complain(const std::string& message) {
  fmt::print(stderr, "{}\n", printable(message));
}

/// CLI11 answers --help and --version through its errors too.
int usage(const CLI::App& application, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    return application.exit(error);
  }
  complain(fmt::format("{} (orrery --help lists what there is)", error.what()));
  return exit_wrong_input;
}

int run(int argc, char** argv) {
  CLI::App application{
      "Orrery predicts what training costs on a cluster: time, memory, energy, "
      "money."};
  application.require_subcommand(1);
  application.set_version_flag("--version", version);
  application.failure_message(CLI::FailureMessage::simple);
  int exit_code = exit_done;
  add_simulate(application, exit_code);
  add_show(application, exit_code);
  add_validate(application, exit_code);
  add_plan(application, exit_code);
  add_buy(application, exit_code);
  add_fit(application, exit_code);
  add_calibrate(application, exit_code);
  add_execute(application, exit_code);
  add_compare(application, exit_code);
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
  try {
    return scenarios::run(argc, argv);
  } catch (const InputError& error) {
    scenarios::complain(error.what());
    return scenarios::exit_wrong_input;
  } catch (const std::exception& error) {
    scenarios::complain(fmt::format("our fault: {}", error.what()));
    return scenarios::exit_our_fault;
  }
}
