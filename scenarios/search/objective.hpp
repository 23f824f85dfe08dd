#pragma once
// What the best plan has least of: one row each. A search, its reports and `orrery plan
// --objective` iterate the table.

#include <span>
#include <string>
#include <string_view>

#include "models/prediction/prediction.hpp"
#include "scenarios/search/plan_space.hpp"

namespace orrery::scenarios {

struct Objective {
  std::string_view name;
  double (*measure)(const models::Estimate& estimate);
  /// On one set of nodes cost and energy follow time; for those two, plans on a part of the cluster
  /// take part, too.
  Extent extent = Extent::all_nodes;
  bool needs_price = false;
  /// A column of the table of plans next to step, MFU and memory.
  std::string_view heading;
  std::string (*cell)(const models::Estimate& estimate);
};

std::span<const Objective> objectives();
/// Errors  `expected time, cost or energy, found 'x'` (InputError, at --objective)
const Objective& objective_named(std::string_view name);
/// "time, cost or energy".
std::string objective_words();

}  // namespace orrery::scenarios
