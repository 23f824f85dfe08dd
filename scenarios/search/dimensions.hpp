#pragma once
// The values that a search tries for each field of a plan, a row per field: the enumeration and the
// sentence that reports it iterate the table.

#include <span>
#include <string_view>
#include <vector>

#include "scenarios/search/plan_space.hpp"

namespace orrery::scenarios {

/// What is fixed while plans are enumerated: the query, and the number of GPUs that each plan uses.
struct SearchBounds {
  const PlanQuery& query;
  std::int64_t gpus = 1;

  bool full() const { return query.breadth == Breadth::full; }
};

struct SearchDimension {
  std::string_view key;   // of the plan's field
  std::string_view name;  // in "tried: ..."
  /// Copies of the plan with every value of this field that is valid with the fields of the rows
  /// before. The plainest comes first, so that it is listed first among plans that tie.
  std::vector<models::Plan> (*tries)(const models::Plan& plan, const SearchBounds& bounds);
  /// Whether a stack supports this field. Null: every stack does.
  bool (*runs)(const models::RunnablePlans& stack) = nullptr;
};

/// The first row varies slowest. Recomputation is the last row, so that plans which differ in
/// nothing else are adjacent.
std::span<const SearchDimension> search_dimensions();

/// Whether a field is chosen by the search or has a flag of its own.
bool is_searched(std::string_view key);

}  // namespace orrery::scenarios
