#pragma once
// The best plans that a search has found so far, and which others may still be among those that
// are wanted.

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "scenarios/search/plan_search.hpp"

namespace orrery::scenarios {

/// The objective's measures of the plans that fit well.
class Incumbents {
 public:
  Incumbents(const PlanQuery& query, Wanted wanted);

  void add(const PlacedPlan& placed, double measure, Bytes memory);
  /// Whether a plan with this lower bound of its measure may be one of those that are wanted.
  bool wants(const PlacedPlan& placed, double bound) const;

 private:
  const PlanQuery& query_;
  Wanted wanted_;
  std::set<std::pair<double, Bytes>> all_;
  std::vector<double> of_kind_;      // the least measure of each of named_kinds
  std::map<ModelCut, double> of_cut_;  // the least measure of each way to cut the model
};

}  // namespace orrery::scenarios
