// orrery compare PREDICTED MEASURED: two traces of one step, joined by operation.

#include <fmt/format.h>

#include <memory>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/terminal.hpp"
#include "scenarios/comparison/comparison.hpp"
#include "sim/trace/chrome.hpp"

namespace orrery::scenarios {

void add_compare(CLI::App& application, int& exit_code) {
  struct Flags {
    std::string predicted, measured;
    bool json = false;
  };
  CLI::App& command = *application.add_subcommand(
      "compare", "Compare the traces of a predicted and an executed step, operation by operation");
  const auto flags = std::make_shared<Flags>();
  command.add_option("predicted", flags->predicted, "Trace of orrery simulate")->required();
  command.add_option("measured", flags->measured, "Trace of orrery execute")->required();
  command.add_flag("--json", flags->json, "One JSON document instead of the tables");
  command.callback([flags, &exit_code] {
    const Comparison comparison =
        compare(read_chrome(flags->predicted), read_chrome(flags->measured), flags->measured);
    fmt::print("{}", flags->json ? to_json(comparison).dump(2) + "\n"
                                 : comparison_report(comparison, terminal().colour));
    exit_code = exit_done;
  });
}

}  // namespace orrery::scenarios
