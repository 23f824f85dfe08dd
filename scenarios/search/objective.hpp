#pragma once
// What a search minimises, a row per objective. The search, its reports and `orrery plan
// --objective` iterate the table.

#include <span>
#include <string>
#include <string_view>

#include "models/prediction/prediction.hpp"
#include "scenarios/search/step_bound.hpp"

namespace orrery::scenarios {

struct Objective {
  std::string_view name;
  double (*measure)(const models::Estimate& estimate);
  /// Lower bound of the measure of a plan on so many nodes, from lower bounds of its step, of its
  /// memory and of the time of one rank's kernels.
  double (*bound)(const PlanQuery& query, int nodes, const PlanBound& least);
  /// On a fixed set of nodes cost scales with time, and energy nearly does: what GPUs draw while
  /// they wait. So these two also consider plans on a part of the cluster.
  Extent extent = Extent::all_nodes;
  bool needs_price = false;
  std::string_view better = "faster";  // of two plans, the one with the smaller measure is
  /// Heading of the column that the plan table has besides step, MFU and memory.
  std::string_view heading;
  std::string (*cell)(const models::Estimate& estimate);
};

std::span<const Objective> objectives();
/// Errors  `expected time, cost, energy, memory or days, found 'x'` (InputError, at the flag)
const Objective& objective_named(std::string_view name, const std::string& flag = "--objective");
/// "time, cost, energy, memory or days".
std::string objective_words();

}  // namespace orrery::scenarios
