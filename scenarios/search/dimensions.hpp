#pragma once
// What a search tries of a plan's fields, one row each: enumeration and the sentence that reports
// it iterate the table.

#include <span>
#include <string_view>
#include <vector>

#include "scenarios/search/plan_space.hpp"

namespace orrery::scenarios {

/// What is fixed while plans are tried: a query, and GPUs of as many nodes as they take.
struct SearchBounds {
  const PlanQuery& query;
  std::int64_t gpus = 1;

  bool full() const { return query.breadth == Breadth::full; }
};

struct SearchDimension {
  std::string_view key;   // of the plan's field
  std::string_view name;  // in "tried: ..."
  /// The plan with every value of this field that goes with the fields of rows before, the plainest
  /// first, so that it stands first of plans which tie.
  std::vector<models::Plan> (*tries)(const models::Plan& plan, const SearchBounds& bounds);
  /// Does a stack of these plans have it at all? Null: every one does.
  bool (*runs)(const models::RunnablePlans& stack) = nullptr;
};

/// The first row varies slowest. Plans that differ in recomputation alone stand together: it is the
/// last row.
std::span<const SearchDimension> search_dimensions();

/// Fields that a search decides, or that have flags of their own.
bool is_searched(std::string_view key);

}  // namespace orrery::scenarios
