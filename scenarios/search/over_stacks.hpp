#pragma once
// The best plans of a search on other software stacks, for a search that names none: which of them
// is best on each, and which loses least wherever it runs. Leaves out plans that were not among the
// best with the stack that was assumed; a search with --software finds those.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/search/comparison.hpp"

namespace orrery::scenarios {

/// The plans on one stack.
struct PlansOnStack {
  std::string software;
  /// By plan, without traffic on links; nothing where the stack cannot run it, or it does not fit.
  std::vector<std::optional<models::Estimate>> estimates;
  std::size_t best = 0;  // index of the plan with the least measure
};

struct OverStacks {
  std::vector<PlansOnStack> stacks;  // that run one of the plans, by name
  std::vector<double> worst;  // by plan: the largest excess over the best of its stacks, a share
  /// Index of the plan that runs on most of the stacks and, of those, has the least `worst`;
  /// of plans that tie, the first.
  std::size_t robust = 0;

  bool empty() const { return stacks.empty(); }
  /// On how many stacks a plan runs.
  std::size_t runs(std::size_t plan) const;
};

/// The plans on every shipped stack whose profile is fitted to runs. A plan is as the search found
/// it, recipes of the other stack left out.
OverStacks over_stacks(const PlanQuery& query, const Objective& objective,
                       const std::vector<RankedPlan>& plans, const Workers& workers);

}  // namespace orrery::scenarios
