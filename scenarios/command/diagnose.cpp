// orrery diagnose LOGS...: which NIC, node, GPU or rank of a cluster is slow.

#include <fmt/format.h>

#include <memory>

#include "calibrate/import/import.hpp"
#include "scenarios/command/commands.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/terminal.hpp"
#include "scenarios/runback/diagnosis.hpp"

namespace orrery::scenarios {

void add_diagnose(CLI::App& application, int& exit_code) {
  struct Flags {
    std::vector<std::string> files;
    std::string step;
    std::optional<std::size_t> skip;
    bool json = false;
  };
  CLI::App& command = *application.add_subcommand(
      "diagnose", "Name the NIC, node, GPU, rank or link that is slow, from several logs");
  const auto flags = std::make_shared<Flags>();
  command
      .add_option(
          "logs", flags->files,
          "Logs of parts that should be alike: perftest (ib_write_bw) by NIC, nccl-tests by node "
          "or "
          "pair, step times by rank (CSV with rank and compute_ms or step_time_s, Megatron-LM, "
          "torchtitan), traces of PyTorch's profiler by rank")
      ->required();
  command.add_option("--step", flags->step,
                     "In traces: the annotation that begins each step, where there is no "
                     "ProfilerStep#");
  command.add_option("--skip", flags->skip,
                     "In traces: steps to leave out at the beginning, as warm-up");
  command.add_flag("--json", flags->json, "One JSON document instead of the report");
  command.callback([flags, &exit_code] {
    DiagnosedLogs logs;
    for (const std::string& file : flags->files) {
      if (add_run_log(file, {.step_mark = flags->step, .skip = flags->skip}, logs)) continue;
      logs.benchmarks.push_back(benchmark_log(calibrate::import_log(file)));
    }
    const Diagnosis found = diagnose(logs);
    const Terminal shown = terminal();
    if (flags->json) {
      print_document(to_json(found));
    } else {
      fmt::print("{}", text_of(found, shown.width, shown.colour));
    }
    exit_code = exit_done;
  });
}

}  // namespace orrery::scenarios
