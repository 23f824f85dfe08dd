#include "executor/session/execution_json.hpp"

#include <algorithm>
#include <cmath>

#include "executor/session/rank_result.hpp"
#include "sim/statistics.hpp"

namespace orrery::executor {

namespace {

Json json_of(const GraphCounts& graphs) {
  return {{"graphs", graphs.graphs},
          {"nodes", graphs.nodes},
          {"launches_in_last_step", graphs.launches}};
}

Json routed_json(const Execution& execution) {
  return {{"sent_bytes", execution.routed.rows},
          {"slot_bytes", execution.routed.slots},
          {"imbalance", execution.imbalance}};
}

Json json_of(const HostWaits& waits) {
  return {{"calls", waits.calls}, {"in_progress", waits.late}, {"waited_s", seconds(waits.waited)}};
}

Json json_of(const std::vector<MeasuredStep>& measured) {
  Json steps = Json::array();
  for (const MeasuredStep& each : measured) {
    steps.push_back({{"step", each.index + 1},
                     {"step_time_s", each.seconds},
                     {"loss", each.loss},
                     {"gradient_norm", each.gradient_norm},
                     {"skipped_updates", each.skipped}});
  }
  return steps;
}

}  // namespace

double median_seconds(const std::vector<MeasuredStep>& steps) {
  std::vector<double> seconds;
  for (std::size_t i = steps.size() > 1 ? 1 : 0; i < steps.size(); ++i) {
    seconds.push_back(steps[i].seconds);
  }
  return seconds.empty() ? 0 : median(seconds);
}

InputTimes median_input(const std::vector<MeasuredStep>& steps) {
  InputTimes medians;
  for (const auto part : input_parts) {
    std::vector<double> times;
    for (std::size_t i = steps.size() > 1 ? 1 : 0; i < steps.size(); ++i) {
      times.push_back(static_cast<double>((steps[i].input.*part).count()));
    }
    if (!times.empty()) medians.*part = Time{std::llround(median(times))};
  }
  return medians;
}

namespace {

/// The median step's input; what is predicted of it where the scenario states its data.
Json input_json(const FinishedRun& run) {
  const InputTimes times = median_input(run.execution.steps);
  Json json{
      {"prefetch", run.execution.ahead.batches}, {"background", run.execution.ahead.background},
      {"read_s", seconds(times.read)},           {"decode_s", seconds(times.decode)},
      {"copy_s", seconds(times.copy)},           {"wait_s", seconds(times.wait)}};
  const auto& lane = run.prediction.data;
  json["predicted"] = Json::object();
  if (!lane) return json;
  Json predicted{{"wait_s", seconds(lane->wait())}};
  for (const models::DataStage& each : lane->stages) {
    predicted[each.name + "_s"] = seconds(each.time);
  }
  json["predicted"] = std::move(predicted);
  return json;
}

}  // namespace

Bytes predicted_peak(const models::Prediction& prediction) {
  Bytes peak{};
  for (const models::StageMemory& each : prediction.memory) {
    peak = std::max(peak, models::total(each.program));
  }
  return peak;
}

Json to_json(const FinishedRun& run) {
  const Execution& execution = run.execution;
  const bool any = !execution.steps.empty();
  Json json{{"ranks", execution.ranks},
            {"fabric", execution.fabric},
            {"device", execution.device},
            {"resumed_from_step", execution.resumed_from},
            {"steps", json_of(execution.steps)},
            {"skipped_updates", any ? Json(execution.steps.back().skipped) : Json(nullptr)},
            {"median_step_time_s", any ? Json(median_seconds(execution.steps)) : Json(nullptr)},
            {"predicted_step_time_s", seconds(run.prediction.step)},
            {"peak_memory_bytes", any ? Json(execution.peak.count()) : Json(nullptr)},
            {"predicted_peak_memory_bytes", predicted_peak(run.prediction).count()},
            {"resident_memory_bytes", any ? Json(execution.resident.count()) : Json(nullptr)}};
  if (any) json["input"] = input_json(run);
  if (run.question.plan.kernels.graphs) json["cuda_graphs"] = json_of(execution.graphs);
  if (execution.host > Bytes{}) json["offloaded_bytes"] = execution.host.count();
  if (execution.routed.slots > 0) json["expert_all_to_all"] = routed_json(execution);
  if (execution.host_waits) json["fabric_calls"] = json_of(*execution.host_waits);
  if (execution.trace && any) json["recorded_step"] = execution.steps.back().index + 2;
  return json;
}

}  // namespace orrery::executor
