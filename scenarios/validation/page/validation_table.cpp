// The text report of `orrery validate`.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/validation/reasons.hpp"
#include "scenarios/validation/validation.hpp"

namespace orrery::scenarios {

namespace {

std::string totals(const Scores& scores) {
  std::string text = fmt::format("{} runs, {} simulated, {} scored\n", scores.rows,
                                 scores.simulated, scores.scored);
  if (!scores.errors) return text;
  const ErrorSummary& errors = *scores.errors;
  text += fmt::format(
      "step time: median error {:.1f} %, mean {:.1f} %, 90th percentile {:.1f} %, "
      "bias {:+.1f} %\n",
      errors.median, errors.mean, errors.p90, errors.bias);
  if (scores.mean_over_stacks) {
    text +=
        fmt::format("mean over stacks of 10 runs or more: {:.1f} %\n", *scores.mean_over_stacks);
  }
  if (scores.ranking.groups > 0) {
    text += fmt::format("ranking: {} groups, mean regret {:.1f} %, {:.1f} % of pairs in order\n",
                        scores.ranking.groups, scores.ranking.mean_regret,
                        scores.ranking.pairs_in_order);
  }
  if (scores.interval) {
    text += fmt::format("p10 to p90 contains {:.1f} % of the runs (80 % expected)\n",
                        scores.interval->inside);
  }
  if (scores.memory) {
    text += fmt::format("peak memory: {} runs, median error {:.1f} %, 90th percentile {:.1f} %\n",
                        scores.memory->rows, scores.memory->median, scores.memory->p90);
  }
  return text + fmt::format("predicted not to fit, but ran: {}\n", scores.said_not_to_fit);
}

std::string grouping_table(const std::string& column,
                           const std::map<std::string, ErrorSummary>& summaries) {
  std::string text =
      fmt::format("\n{:<40} {:>6} {:>9} {:>9} {:>9}\n", column, "runs", "median", "p90", "bias");
  for (const auto& [value, summary] : summaries) {
    text += fmt::format("{:<40.40} {:>6} {:>7.1f} % {:>7.1f} % {:>+7.1f} %\n",
                        value.empty() ? "(not stated)" : value, summary.rows, summary.median,
                        summary.p90, summary.bias);
  }
  return text;
}

std::string worst_table(const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results,
                        std::size_t worst) {
  const auto scored =
      worst_of(results, worst, [](const RunResult& each) { return std::abs(*each.error_pct); });
  if (scored.empty()) return {};
  std::string text = fmt::format("\n{:<20} {:<22} {:<26} {:>11} {:>11} {:>9}\n", "worst", "stack",
                                 "model", "measured", "predicted", "error");
  for (const RunResult* each : scored) {
    const MeasuredRun& run = runs[each->row];
    text +=
        fmt::format("{:<20} {:<22.22} {:<26.26} {:>9.4g} s {:>9.4g} s {:>+7.1f} %\n", run.run,
                    run.software, run.model, *run.step_time, *each->predicted, *each->error_pct);
  }
  return text;
}

std::string apart_text(const Scores& scores) {
  std::string text;
  for (const auto& [group, own] : scores.apart) {
    text += fmt::format("\nreported separately: {}\n{}", group, totals(own));
    for (const auto& [column, summaries] : own.by) text += grouping_table(column, summaries);
  }
  return text;
}

std::string titled(const char* title, const Reasons& reasons) {
  return reasons.runs().empty() ? std::string{} : fmt::format("\n{}\n{}", title, reasons.lines());
}

std::string unscored_tables(const std::vector<MeasuredRun>& runs,
                            const std::vector<RunResult>& results) {
  const auto [unscored, skipped] = left_out_of(runs, results);
  return titled("simulated, not scored", unscored) + titled("skipped", skipped);
}

std::string doubts(const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results) {
  std::string text;
  for (const RunResult& each : results) {
    const std::string doubt = each.counts() ? doubt_of(runs[each.row], *each.predicted) : "";
    if (!doubt.empty()) text += fmt::format("  {}: {}\n", runs[each.row].run, doubt);
  }
  return text.empty() ? text : "\na factor of 10 or more off the prediction\n" + text;
}

}  // namespace

std::string table_of(const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results,
                     const Scores& scores, std::size_t worst) {
  std::string text = totals(scores);
  for (const auto& [column, summaries] : scores.by) text += grouping_table(column, summaries);
  return text + apart_text(scores) + worst_table(runs, results, worst) +
         unscored_tables(runs, results) + doubts(runs, results);
}

}  // namespace orrery::scenarios
