#pragma once
// What a list of errors comes down to, and whether predictions put plans in the right order.

#include <cstddef>
#include <string>
#include <vector>

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

/// One run that others can be compared with.
struct Contender {
  std::string group;
  double measured = 0, predicted = 0;
  std::size_t plan = 0;  // the same of repeats, which nothing could put in order
  std::size_t cut = 0;   // the same of plans with equal tensor, pipeline and micro-batch sizes
};

struct Ranking {
  std::size_t groups = 0;
  double mean_regret = 0;     // percent: the plan predicted fastest over the fastest measured
  double pairs_in_order = 0;  // percent of pairs
  /// Percent: standard deviation of ln(predicted / measured) around what a group's plans have in
  /// common, from the median of its size; the median of the groups'.
  double plan_spread = 0;
  /// Percent: by how much the errors of two plans of a group differ, the median of pairs that cut
  /// the model alike and of all other pairs; the median of the groups that have such pairs.
  double gap_of_alike = 0, gap_of_others = 0;
};

/// Groups of 4 or more whose measured times spread over 10 %; pairs of plans that differ by over
/// 5 %, repeats of one plan being no pair.
Ranking ranking_of(const std::vector<Contender>& contenders);

}  // namespace orrery::scenarios
