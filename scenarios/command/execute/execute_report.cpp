// The report that `orrery execute` prints when the run has ended.

#include <fmt/format.h>

#include "executor/session/execution_json.hpp"
#include "scenarios/command/execute/execute_events.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/ending.hpp"
#include "scenarios/command/terminal/terminal.hpp"
#include "scenarios/command/terminal/trace_output.hpp"
#include "scenarios/comparison/recorded.hpp"
#include "scenarios/report/result.hpp"

namespace orrery::scenarios {

namespace {

using executor::Execution;

/// Prints CUDA graph launches, bytes routed to experts, and the host's waits for fabric calls.
void print_counts(const executor::FinishedRun& run) {
  if (run.question.plan.kernels.graphs) {
    const executor::GraphCounts& of = run.execution.graphs;
    fmt::print("  CUDA graphs        {:>12}   of {} nodes, launched {} times in the last step\n",
               of.graphs, of.nodes, of.launches);
  }
  if (const executor::RoutedBytes& of = run.execution.routed; of.slots > 0) {
    constexpr double mib = 1 << 20;
    fmt::print(
        "  experts' rows      {:>8.1f} MiB   sent in a step by all ranks, of {:.1f} MiB of slots\n",
        static_cast<double>(of.rows) / mib, static_cast<double>(of.slots) / mib);
    fmt::print(
        "    busiest rank     {:>12.2f}   over the mean of its group; the plan's imbalance is "
        "{:.2f}\n",
        run.execution.imbalance, run.question.plan.experts.imbalance);
  }
  if (run.execution.host_waits) {
    const executor::HostWaits& of = *run.execution.host_waits;
    fmt::print("  calls of {:<9} {:>12}   {} in progress when they returned, waited for {:.4g} s\n",
               run.execution.fabric, of.calls, of.late, seconds(of.waited));
  }
}

/// The median step's wait for its batch, next to the predicted one where the scenario states data.
void print_input(const executor::FinishedRun& run) {
  const executor::InputTimes times = executor::median_input(run.execution.steps);
  const executor::ReadAhead& ahead = run.execution.ahead;
  const auto& lane = run.prediction.data;
  fmt::print("  waits for data     {:>10.4g} s   {}\n", seconds(times.wait),
             lane ? fmt::format("predicted {:.4g} s", seconds(lane->wait()))
                  : std::string{"not predicted: no /data is stated"});
  fmt::print(
      "    its lane                        read {:.4g} s, decode {:.4g} s, copy {:.4g} s{}\n",
      seconds(times.read), seconds(times.decode), seconds(times.copy),
      ahead.background ? fmt::format(", {} batches ahead", ahead.batches)
                       : std::string{", read when a step asks for it"});
  if (!lane) return;
  std::string stages;
  for (const models::DataStage& each : lane->stages) {
    stages +=
        fmt::format("{}{} {:.4g} s", stages.empty() ? "" : ", ", each.name, seconds(each.time));
  }
  fmt::print("    predicted                       {}\n", stages);
}

void print_figures(const executor::FinishedRun& run) {
  constexpr double mib = 1 << 20;
  const Execution& execution = run.execution;
  const models::Plan& plan = run.question.plan;
  const double measured = median_seconds(execution.steps);
  const double tokens =
      static_cast<double>(plan.batch.global) * static_cast<double>(plan.batch.seq_len);
  fmt::print("  steps              {:>12}   from {} to {}\n", execution.steps.size(),
             execution.steps.front().index, execution.steps.back().index);
  fmt::print("  loss               {:>12.4f}   first {:.4f}\n", execution.steps.back().loss,
             execution.steps.front().loss);
  if (const std::int64_t skipped = execution.steps.back().skipped; skipped > 0) {
    fmt::print("  updates skipped    {:>12}   where gradients were not finite\n", skipped);
  }
  fmt::print("  step, median       {:>10.4g} s   predicted {:.4g} s\n", measured,
             seconds(run.prediction.step));
  fmt::print("  tokens per second  {:>12.4g}\n", tokens / measured);
  print_input(run);
  fmt::print("  peak memory        {:>8.1f} MiB   predicted {:.1f} MiB\n",
             static_cast<double>(execution.peak.count()) / mib,
             static_cast<double>(executor::predicted_peak(run.prediction).count()) / mib);
  if (execution.host > Bytes{}) {
    fmt::print("  offloaded          {:>8.1f} MiB   in the host's memory\n",
               static_cast<double>(execution.host.count()) / mib);
  }
  print_counts(run);
}

void print_text(const executor::FinishedRun& run, const std::optional<Comparison>& comparison) {
  const Execution& execution = run.execution;
  fmt::print("{} on {} ranks over {}: {}\n", run.question.model.name, execution.ranks,
             execution.fabric, execution.device);
  if (execution.steps.empty()) {
    fmt::print("  nothing left to do: the checkpoint is from step {}\n", execution.resumed_from);
    return;
  }
  print_figures(run);
  if (comparison) {
    fmt::print("\nOne more step, recorded\n{}", comparison_report(*comparison, terminal().colour));
  }
}

}  // namespace

void print_execution(const executor::FinishedRun& run, const ExecuteOutput& output) {
  if (output.trace) save_trace(*run.execution.trace, *output.trace);
  std::optional<Comparison> comparison;
  if (output.explain && !run.execution.steps.empty()) {
    comparison = compare_recorded(run.question, run.prediction, *run.execution.trace);
  }
  try {
    if (output.json) {
      Json json = to_json(run);
      if (comparison) json["comparison"] = to_json(*comparison);
      print_document(json);
    } else {
      print_text(run, comparison);
    }
  } catch (const std::system_error& error) {  // writing to stdout failed
    throw OutputError{"standard output", error.code()};
  }
  flush_output();
}

}  // namespace orrery::scenarios
