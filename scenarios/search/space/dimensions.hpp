#pragma once
// The values that a search tries for each field of a plan, a row per field: the enumeration and the
// sentence that reports it iterate the table.

#include <span>
#include <string_view>
#include <vector>

#include "scenarios/search/space/plan_space.hpp"

namespace orrery::scenarios {

/// What is fixed while plans are enumerated: the query, and the number of GPUs that each plan uses.
struct SearchBounds {
  const PlanQuery& query;
  std::int64_t gpus = 1;

  bool full() const { return query.breadth == Breadth::full; }
  bool states(std::string_view key) const;
  /// The value that the query fixes, alone; otherwise those given.
  template <auto... path>
  std::vector<models::MemberAt<path...>> fixed_or(
      std::string_view key, std::vector<models::MemberAt<path...>> tried) const {
    if (states(key)) return {models::member_at<path...>(query.fixed)};
    return tried;
  }
};

struct SearchDimension {
  std::string_view key;   // of the plan's field
  std::string_view name;  // in "tried: ..."
  /// Copies of the plan with every value of this field that is valid with the fields of the rows
  /// before. The plainest comes first, so that it is listed first among plans that tie.
  std::vector<models::Plan> (*tries)(const models::Plan& plan, const SearchBounds& bounds);
  /// Whether a stack supports this field. Null: every stack does.
  bool (*runs)(const models::RunnablePlans& stack) = nullptr;
  /// Tried after the stack's recipes have chosen the other fields. Which values a stack runs
  /// depends on these.
  bool refines = false;
};

/// The first row varies slowest. Rows that refine come last.
std::span<const SearchDimension> search_dimensions();

/// The fields that a search varies, in the order of its dimensions.
std::vector<std::string_view> searched_keys(const PlanQuery& query);

/// Whether a search for this stack chooses a field, or the field has a flag of its own.
bool is_searched(std::string_view key, const models::Software& software);

}  // namespace orrery::scenarios
