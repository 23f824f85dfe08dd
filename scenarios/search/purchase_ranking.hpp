#pragma once
// Which of the clusters found comes first.

#include <vector>

#include "scenarios/search/purchase.hpp"

namespace orrery::scenarios {

/// By which factor days and dollars exceed deadline and budget: 1 or less meets both.
double excess_of(const PurchaseQuery& query, double days, Money cost);

/// Merges node types that differ in nothing that counts here, marks those that no other is faster
/// and cheaper than, and sorts: what meets deadline and budget first, the cheapest (with a budget
/// alone, the fastest) before others.
void rank_choices(const PurchaseQuery& query, std::vector<PurchaseChoice>& choices);

}  // namespace orrery::scenarios
