// The JSON of `orrery validate --json`; missing values are null.

#include "scenarios/validation/validation.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::scenarios {

namespace {

Json skipped_json(const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results) {
  Json skipped = Json::array();
  for (const RunResult& each : results) {
    if (each.simulated()) continue;
    skipped.push_back({{"run", runs[each.row].run}, {"reason", each.skipped_because}});
  }
  return skipped;
}

Json by_json(const Scores& scores) {
  Json by = Json::object();
  for (const auto& [column, summaries] : scores.by) {
    Json& values = by[column] = Json::object();
    for (const auto& [value, summary] : summaries) {
      values[value] = {{"rows", summary.rows},
                       {"median_abs_error_pct", summary.median},
                       {"p90_abs_error_pct", summary.p90},
                       {"bias_pct", summary.bias}};
    }
  }
  return by;
}

Json run_json(const MeasuredRun& run, const RunResult& result) {
  return {{"run", run.run},
          {"scored", result.scored()},
          {"not_scored_because", or_null(result.left_out_because())},
          {"apart", or_null(result.apart)},
          {"measured_step_time_s", or_null(run.step_time)},
          {"predicted_step_time_s", or_null(result.predicted)},
          {"error_pct", or_null(result.error_pct)},
          {"uncertainty", {{"p10", or_null(result.p10)}, {"p90", or_null(result.p90)}}},
          {"measured_peak_memory_bytes", or_null(result.measured_memory)},
          {"predicted_peak_memory_bytes", or_null(result.predicted_memory)},
          {"predicted_peak_memory_range_bytes",
           {{"least", result.need.least.count()}, {"most", result.need.most.count()}}},
          {"fits", result.fits},
          {"doubt", result.predicted ? or_null(doubt_of(run, *result.predicted)) : nullptr},
          {"assumptions", result.assumptions}};
}

void add_figures(Json& json, const Scores& scores) {
  const bool ranked = scores.ranking.groups > 0;
  json["scored"] = scores.scored;
  add_errors(json, scores.errors);
  json["mean_over_stacks_pct"] = or_null(scores.mean_over_stacks);
  json["by"] = by_json(scores);
  json["ranking"] = {
      {"groups", scores.ranking.groups},
      {"mean_regret_pct", ranked ? Json(scores.ranking.mean_regret) : Json(nullptr)},
      {"pairs_in_order_pct", ranked ? Json(scores.ranking.pairs_in_order) : Json(nullptr)}};
  json["memory"] = {
      {"rows", scores.memory ? scores.memory->rows : 0},
      {"median_abs_error_pct", scores.memory ? Json(scores.memory->median) : Json(nullptr)},
      {"p90_abs_error_pct", scores.memory ? Json(scores.memory->p90) : Json(nullptr)}};
  json["said_not_to_fit"] = scores.said_not_to_fit;
  json["interval"] = {
      {"rows", scores.interval ? scores.interval->rows : 0},
      {"inside_pct", scores.interval ? Json(scores.interval->inside) : Json(nullptr)}};
}

Json apart_json(const Scores& scores) {
  Json apart = Json::object();
  for (const auto& [group, own] : scores.apart) {
    apart[group] = {{"rows", own.rows}, {"simulated", own.simulated}};
    add_figures(apart[group], own);
  }
  return apart;
}

}  // namespace

Json to_json(const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results,
             const Scores& scores) {
  Json json;
  json["kind"] = "training runs";
  json["rows"] = scores.rows;
  json["simulated"] = scores.simulated;
  json["skipped"] = skipped_json(runs, results);
  add_figures(json, scores);
  json["apart"] = apart_json(scores);
  json["runs"] = Json::array();
  for (const RunResult& each : results) {
    if (each.simulated()) json["runs"].push_back(run_json(runs[each.row], each));
  }
  return json;
}

}  // namespace orrery::scenarios
