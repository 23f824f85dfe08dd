#pragma once
// Ranges of predictions from published runs: how far groups of runs were off with their source left
// out, by kind and by the steps between them and other groups of their kind.

#include <string>
#include <vector>

#include "models/prediction/error/evidence.hpp"
#include "scenarios/validation/validation.hpp"

namespace orrery::scenarios {

/// A group with ln(measured / predicted) of its runs, each over the widening of its fallback
/// curves.
struct MeasuredGroup {
  models::RunGroup group;
  std::vector<double> errors;  // with its source left out of the fits
  std::vector<double> fitted;  // by the profiles as they are
  /// Nothing of its stack's profile is fitted: the group says how far such stacks are off, and
  /// brings predictions of its own stack no closer.
  bool of_unfitted_stack = false;

  double bias() const;  // median of `errors`
};

/// Groups by traits, source and model, of all runs that count in some figure.
std::vector<MeasuredGroup> measured_groups(const std::vector<MeasuredRun>& runs,
                                           const std::vector<RunResult>& results,
                                           const UnseenErrors& unseen);

/// The same of ln(measured / predicted) peak memory, to which nothing is fitted by row.
std::vector<MeasuredGroup> groups_with_peaks(const std::vector<MeasuredRun>& runs,
                                             const std::vector<RunResult>& results);

/// Spreads of kinds and of steps that explain each other: 80 % of a kind's groups lie within
/// sqrt(b^2 + sum of s^2 of their steps), each with its source left out, and so do 80 % of the
/// groups that took a step. A step of fewer than eight groups widens the range of all by 1.3; a
/// kind of fewer than twelve is at least as spread as all together.
/// Errors  no group: ContractError
models::RangeRecord ranges_of(const std::vector<MeasuredGroup>& groups);

Json to_json(const models::RangeRecord& ranges);

/// A section of the page (Markdown): by kind and by stack, how many runs are inside the range that
/// all other sources give them, and how wide it is.
std::string coverage_section(const std::vector<MeasuredGroup>& groups);

}  // namespace orrery::scenarios
