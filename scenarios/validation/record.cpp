// The record of prediction errors that a validation writes and predictions read:
// models/prediction/published_errors.json.

#include <cmath>
#include <set>

#include "scenarios/validation/ranges.hpp"
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
  std::vector<double> errors;
  for (const RunResult* each : results) errors.push_back(*each->error_pct);
  const ErrorSummary summary = summary_of(errors);
  return {{"rows", summary.rows},
          {"median_abs_error_pct", rounded(summary.median)},
          {"p90_abs_error_pct", rounded(summary.p90)},
          {"bias_pct", rounded(summary.bias)}};
}

Json ordering_json(const Ranking& ranking) {
  return {{"pairs_in_order_pct", rounded(ranking.pairs_in_order)},
          {"mean_regret_pct", rounded(ranking.mean_regret)},
          {"plan_spread_pct", rounded(ranking.plan_spread)},
          {"gap_of_alike_pct", rounded(ranking.gap_of_alike)},
          {"gap_of_others_pct", rounded(ranking.gap_of_others)}};
}

Json memory_json(const RecordInputs& inputs) {
  return {{"rows", inputs.scores.memory->rows},
          {"median_abs_error_pct", rounded(inputs.scores.memory->median)},
          {"ranges", to_json(ranges_of(groups_with_peaks(inputs.runs, inputs.results)))}};
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

Json record_of(const RecordInputs& inputs, const std::string& source) {
  std::vector<const RunResult*> dense, sharded;
  for (const RunResult& each : inputs.results) {
    if (each.scored()) dense.push_back(&each);
    if (each.scored_apart() && each.apart == sharded_runs) sharded.push_back(&each);
  }
  if (dense.empty() || sharded.empty() || !inputs.scores.memory) {
    throw InputError{"--record",
                     "expected runs with and without sharded gradients, and with peaks of memory"};
  }
  Json json{{"source", source}, {"dense", steps_json(dense)}};
  json["fitted"] = ordering_json(inputs.scores.ranking);
  json["unfitted"] = ordering_json(inputs.unfitted.ranking);
  json["sharded"] = steps_json(sharded);
  json["ranges"] = to_json(ranges_of(measured_groups(inputs.runs, inputs.results, inputs.unseen)));
  json["highest_mfu"] = highest_mfu_json(inputs.results);
  json["memory"] = memory_json(inputs);
  return json;
}

}  // namespace orrery::scenarios
