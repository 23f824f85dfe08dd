#pragma once
// A plan search as JSON, and as text for people.

#include <optional>
#include <string>
#include <vector>

#include "scenarios/report/memory_advice.hpp"
#include "scenarios/report/result.hpp"
#include "scenarios/search/comparison.hpp"
#include "scenarios/search/over_stacks.hpp"

namespace orrery::scenarios {

/// The contents of a report on a plan search.
struct PlanReport {
  const PlanQuery& query;
  const Objective& objective;
  const PlanAnswer& answer;
  const std::vector<RankedPlan>& best;  // compare_best of the answer
  std::string cluster;                  // as the user names it
  std::vector<std::string> assumptions;
  std::string simulate;  // the command line that simulates the best plan; empty without one
  const Objective* against = nullptr;     // of the Pareto front; null: none was asked for
  std::optional<double> tokens{};         // to train on
  std::optional<Time> longest_step{};     // that meets the deadline
  std::vector<RankedPlan> tight_ahead{};  // of the answer
  MemoryAdvice advice{};                  // for the nearest miss where nothing fits
  OverStacks over_stacks{};               // of `best`; empty where a stack was named
};

/// `fits, out_of_memory{rank, needed_bytes, available_bytes}` (of the nearest miss where nothing
/// fits), `fit` of the best plan, `reason` why the answer is no, `plans[]`, `tight_plans[]` that
/// would beat the best, `expected_step_time_s` of the best and how many ways to cut the model are
/// predicted `alike` (comparison.hpp), `highest_published_mfu` (best_of_many.hpp), `counts{}`,
/// `nearest_miss`, `advice[]`, `searched{field: values}`, `not_searched[]`, `bound_s`,
/// `gap`, `over_stacks` (null where a stack was named), `sharded_error`, `assumptions[]`. The same
/// bytes on every run.
Json to_json(const PlanReport& report);

/// The best plans in a table, which of them cannot be distinguished, why the others are slower, and
/// what did not fit.
std::string text_of(const PlanReport& report, const ReportOptions& options);

/// The Pareto front as a picture in SVG: all plans that were estimated, and a line through those of
/// the front. Errors  no front was asked for: ContractError
std::string picture_of(const PlanReport& report);

/// Why there is no plan: nothing fits, or nothing divides the batch. Empty if there is one.
std::string reason_of(const PlanQuery& query, const PlanAnswer& answer);

}  // namespace orrery::scenarios
