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

  /// against  the measure of Wanted::against
  void add(const PlacedPlan& placed, double measure, double against, Bytes memory);
  /// Whether a plan with these lower bounds of its measures may be one of those that are wanted.
  bool wants(const PlacedPlan& placed, double bound, double against) const;

 private:
  /// Is a plan with these measures no better than one of the front?
  bool beaten(double measure, double against) const;

  const PlanQuery& query_;
  Wanted wanted_;
  std::set<std::pair<double, Bytes>> all_;
  std::vector<double> of_kind_;        // the least measure of each of named_kinds
  std::map<double, double> front_;     // Pareto front: by measure, those of `against`, which fall
  std::map<ModelCut, double> of_cut_;  // the least measure of each way to cut the model
};

}  // namespace orrery::scenarios
