// The record of prediction errors that a validation writes and predictions read:
// models/prediction/published_errors.json.

#include <cmath>
#include <set>

#include "models/prediction/uncertainty.hpp"
#include "scenarios/validation/validation.hpp"

namespace orrery::scenarios {

namespace {

/// Rounds to four decimals, the precision of figures over some hundred runs.
double rounded(double value) {
  constexpr double digits = 1e4;
  return std::round(value * digits) / digits;
}

/// Error statistics of results, of which there must be at least one.
Json steps_json(const std::vector<const RunResult*>& results) {
  std::vector<double> errors, logs;
  for (const RunResult* each : results) {
    errors.push_back(*each->error_pct);
    logs.push_back(-std::log1p(*each->error_pct / 100) / models::widening(each->fallback_curves));
  }
  const ErrorSummary summary = summary_of(errors);
  return {{"rows", summary.rows},
          {"median_abs_error_pct", rounded(summary.median)},
          {"p90_abs_error_pct", rounded(summary.p90)},
          {"bias_pct", rounded(summary.bias)},
          {"log_p10", rounded(quantile(logs, 0.1))},
          {"log_p90", rounded(quantile(logs, 0.9))}};
}

Json ordering_json(const Ranking& ranking) {
  return {{"pairs_in_order_pct", rounded(ranking.pairs_in_order)},
          {"mean_regret_pct", rounded(ranking.mean_regret)},
          {"plan_spread_pct", rounded(ranking.plan_spread)},
          {"gap_of_alike_pct", rounded(ranking.gap_of_alike)},
          {"gap_of_others_pct", rounded(ranking.gap_of_others)}};
}

Json memory_json(const std::vector<RunResult>& results, const MemoryScore& score) {
  std::vector<double> logs;
  for (const RunResult& each : results) {
    if (!each.scored() || !each.measured_memory) continue;
    logs.push_back(std::log(ratio(*each.measured_memory, *each.predicted_memory)));
  }
  Json percentiles = Json::array();
  for (int i = 0; i <= 100; ++i) percentiles.push_back(rounded(quantile(logs, i / 100.0)));
  return {{"rows", score.rows},
          {"median_abs_error_pct", rounded(score.median)},
          {"log_percentiles", percentiles}};
}

/// A highest MFU over fewer runs than this is not recorded.
constexpr std::int64_t least_rows_of_a_peak = 3;

/// The highest MFU of pre-training runs of dense models, by model size and GPU peak.
Json highest_mfu_json(const std::vector<RunResult>& results) {
  std::map<std::string, std::pair<const RunResult*, std::int64_t>> highest;  // best run, count
  for (const RunResult& each : results) {
    const bool dense = each.apart.empty() || each.apart == sharded_runs;
    if (!each.counts() || !dense) continue;
    auto& [best, rows] = highest[each.peak];
    if (best == nullptr || each.mfu > best->mfu) best = &each;
    ++rows;
  }
  Json json = Json::object();
  for (const auto& [peak, found] : highest) {
    if (found.second < least_rows_of_a_peak) continue;
    json[peak] = {
        {"mfu", rounded(found.first->mfu)}, {"rows", found.second}, {"run", found.first->title}};
  }
  return json;
}

}  // namespace

models::Software generic_for_all(const std::vector<MeasuredRun>& runs) {
  const Document document = Document::from(models::software_profile("generic"), "generic");
  models::Software generic = models::read_software(document.root());
  std::set<std::string> stacks;
  for (const MeasuredRun& each : runs) stacks.insert(each.software);
  generic.stands_for.clear();
  for (const std::string& stack : stacks) generic.stands_for.push_back({.stack = stack});
  return generic;
}

Json record_of(const std::vector<RunResult>& results, const Scores& scores, const Scores& unfitted,
               const std::string& source) {
  std::vector<const RunResult*> dense, sharded;
  std::map<std::string, std::vector<const RunResult*>> by_profile;
  for (const RunResult& each : results) {
    if (each.scored()) dense.push_back(&each);
    if (!each.scored_apart() || each.apart != sharded_runs) continue;
    sharded.push_back(&each);
    if (each.profile != "generic") by_profile[each.profile].push_back(&each);
  }
  if (dense.empty() || sharded.empty() || !scores.memory) {
    throw InputError{"--record",
                     "expected runs with and without sharded gradients, and with peaks of memory"};
  }
  Json json{{"source", source}, {"dense", steps_json(dense)}};
  json["fitted"] = ordering_json(scores.ranking);
  json["unfitted"] = ordering_json(unfitted.ranking);
  json["sharded"] = steps_json(sharded);
  json["sharded_by_profile"] = Json::object();
  for (const auto& [profile, list] : by_profile) {
    json["sharded_by_profile"][profile] = steps_json(list);
  }
  json["highest_mfu"] = highest_mfu_json(results);
  json["memory"] = memory_json(results, *scores.memory);
  return json;
}

}  // namespace orrery::scenarios
