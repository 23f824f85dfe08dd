// What `orrery execute` prints at its end.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "scenarios/command/execute_run.hpp"
#include "scenarios/command/terminal.hpp"
#include "scenarios/comparison/comparison.hpp"
#include "scenarios/result.hpp"

namespace orrery::scenarios {

namespace {

/// Of the steps after the first, which also warms up; of the first where there is no other.
double median_seconds(const std::vector<MeasuredStep>& steps) {
  std::vector<double> seconds;
  for (std::size_t i = steps.size() > 1 ? 1 : 0; i < steps.size(); ++i) {
    seconds.push_back(steps[i].seconds);
  }
  if (seconds.empty()) return 0;
  std::sort(seconds.begin(), seconds.end());
  const std::size_t half = seconds.size() / 2;
  return seconds.size() % 2 == 1 ? seconds[half] : (seconds[half - 1] + seconds[half]) / 2;
}

/// Buffers of the Program at the peak of the fullest stage, which is what a rank measures.
Bytes predicted_peak(const models::Prediction& prediction) {
  Bytes peak{};
  for (const models::StageMemory& each : prediction.memory) {
    peak = std::max(peak, models::total(each.program));
  }
  return peak;
}

Json json_of(const executor::GraphCounts& graphs) {
  return {{"graphs", graphs.graphs},
          {"nodes", graphs.nodes},
          {"launches_in_last_step", graphs.launches}};
}

Json json_of(const executor::HostWaits& waits) {
  return {
      {"calls", waits.calls}, {"in_progress", waits.late}, {"waited_s", in_seconds(waits.waited)}};
}

Json json_of(const Execution& execution, const models::Prediction& prediction) {
  Json steps = Json::array();
  for (const MeasuredStep& each : execution.steps) {
    steps.push_back({{"step", each.index},
                     {"step_time_s", each.seconds},
                     {"loss", each.loss},
                     {"gradient_norm", each.gradient_norm},
                     {"skipped_updates", each.skipped}});
  }
  const bool any = !execution.steps.empty();
  return {{"ranks", execution.ranks},
          {"fabric", execution.fabric},
          {"device", execution.device},
          {"resumed_from_step", execution.resumed_from},
          {"steps", std::move(steps)},
          {"skipped_updates", any ? Json(execution.steps.back().skipped) : Json(nullptr)},
          {"median_step_time_s", any ? Json(median_seconds(execution.steps)) : Json(nullptr)},
          {"predicted_step_time_s", in_seconds(prediction.step)},
          {"peak_memory_bytes", any ? Json(execution.peak.count()) : Json(nullptr)},
          {"predicted_peak_memory_bytes", predicted_peak(prediction).count()},
          {"resident_memory_bytes", any ? Json(execution.resident.count()) : Json(nullptr)}};
}

/// Of what the host started.
void print_counts(const models::Question& question, const Execution& execution) {
  if (question.plan.cuda_graphs) {
    const executor::GraphCounts& of = execution.graphs;
    fmt::print("  CUDA graphs        {:>12}   of {} nodes, launched {} times in the last step\n",
               of.graphs, of.nodes, of.launches);
  }
  if (execution.host_waits) {
    const executor::HostWaits& of = *execution.host_waits;
    fmt::print("  calls of {:<9} {:>12}   {} in progress when they returned, waited for {:.4g} s\n",
               execution.fabric, of.calls, of.late, in_seconds(of.waited));
  }
}

}  // namespace

void print_execution(const models::Question& question, const models::Prediction& prediction,
                     const Execution& execution, const ExecuteOptions& options) {
  const bool any = !execution.steps.empty();
  std::optional<Comparison> comparison;
  if (options.explain && any) {
    const bool by_operation = options.detail == executor::TraceDetail::operations;
    const auto detail = by_operation ? TraceDetail::operations : TraceDetail::instructions;
    comparison = compare(trace_of(prediction, detail), *execution.trace, "the recorded step");
  }
  if (options.json) {
    Json json = json_of(execution, prediction);
    if (question.plan.cuda_graphs) json["cuda_graphs"] = json_of(execution.graphs);
    if (execution.host_waits) json["fabric_calls"] = json_of(*execution.host_waits);
    if (execution.trace && any) json["recorded_step"] = execution.steps.back().index + 1;
    if (comparison) json["comparison"] = to_json(*comparison);
    fmt::print("{}\n", json.dump(2));
    return;
  }
  constexpr double mib = 1 << 20;
  const double measured = median_seconds(execution.steps), predicted = in_seconds(prediction.step);
  const double tokens =
      static_cast<double>(question.plan.global_batch) * static_cast<double>(question.plan.seq_len);
  fmt::print("{} on {} ranks over {}: {}\n", question.model.name, execution.ranks, execution.fabric,
             execution.device);
  if (!any) {
    fmt::print("  nothing left to do: the checkpoint has seen {} steps\n", execution.resumed_from);
    return;
  }
  fmt::print("  steps              {:>12}   from {} to {}\n", execution.steps.size(),
             execution.steps.front().index, execution.steps.back().index);
  fmt::print("  loss               {:>12.4f}   first {:.4f}\n", execution.steps.back().loss,
             execution.steps.front().loss);
  if (const std::int64_t skipped = execution.steps.back().skipped; skipped > 0) {
    fmt::print("  updates left out   {:>12}   where gradients were not finite\n", skipped);
  }
  fmt::print("  step, median       {:>10.4g} s   predicted {:.4g} s\n", measured, predicted);
  fmt::print("  tokens per second  {:>12.4g}\n", tokens / measured);
  fmt::print("  peak memory        {:>8.1f} MiB   predicted {:.1f} MiB\n",
             static_cast<double>(execution.peak.count()) / mib,
             static_cast<double>(predicted_peak(prediction).count()) / mib);
  print_counts(question, execution);
  if (comparison) {
    fmt::print("\nOne more step, recorded\n{}", comparison_report(*comparison, terminal().colour));
  }
}

}  // namespace orrery::scenarios
