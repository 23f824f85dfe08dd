#pragma once
// Summaries of prediction errors, and how well predictions rank plans.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/input/document.hpp"
#include "sim/statistics.hpp"

namespace orrery::scenarios {

/// Errors of a set of runs, in percent.
struct ErrorSummary {
  std::size_t rows = 0;
  double median = 0, mean = 0, p90 = 0;  // of |error|
  double bias = 0;                       // median of the signed error
};
/// Errors  an empty list: ContractError
ErrorSummary summary_of(const std::vector<double>& errors);
std::optional<ErrorSummary> summary_if_any(const std::vector<double>& errors);
/// `{rows, median_abs_error_pct, mean_abs_error_pct, p90_abs_error_pct, bias_pct}`; without errors
/// 0 rows and nulls.
Json to_json(const std::optional<ErrorSummary>& summary);
/// Adds the same members but rows.
void add_errors(Json& json, const std::optional<ErrorSummary>& summary);

/// One run of a group whose plans are ranked against each other.
struct RankedRun {
  std::string group;
  double measured = 0, predicted = 0;
  std::size_t plan = 0;  // equal for repeats, which have no order
  std::size_t cut = 0;   // equal for equal tensor, pipeline and micro-batch sizes
};

struct Ranking {
  std::size_t groups = 0;
  double mean_regret = 0;     // percent: the plan predicted fastest over the fastest measured
  double pairs_in_order = 0;  // percent of pairs that are predicted in the measured order
  /// Percent: standard deviation of ln(predicted / measured) around the group's median, estimated
  /// from the median absolute deviation; the median over groups.
  double plan_spread = 0;
  /// Percent: the difference between the errors of two plans of a group, the median over pairs with
  /// the same cut and over all other pairs; the median over groups that have such pairs.
  double gap_of_alike = 0, gap_of_others = 0;
};

/// Uses groups of 4 or more runs whose measured times spread over 10 %, and pairs of different
/// plans that differ by over 5 %.
Ranking ranking_of(const std::vector<RankedRun>& ranked_runs);

}  // namespace orrery::scenarios
