#pragma once
// The order of the clusters found.

#include <vector>

#include "scenarios/purchase/purchase.hpp"

namespace orrery::scenarios {

/// The larger factor by which days or dollars exceed their limit: 1 or less meets both. An unknown
/// cost exceeds every budget.
double excess_of(const PurchaseQuery& query, double days, std::optional<Money> cost);

/// Merges node types with equal results, marks the Pareto front, and sorts: choices that meet
/// deadline and budget first, the cheapest (with a budget alone, the fastest) before others.
/// Prices of smaller pieces and unknown ones come after those of such clusters.
void rank_choices(const PurchaseQuery& query, std::vector<PurchaseChoice>& choices);

}  // namespace orrery::scenarios
