#pragma once
// Which plan? All plans of a space are estimated and put in order. Those that do not fit are
// counted, and the one that lacks least is named.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/search/objective.hpp"
#include "scenarios/search/plan_space.hpp"
#include "scenarios/search/workers.hpp"

namespace orrery::scenarios {

/// Of plans that differ in nothing but recomputation: are all estimated, or the more thrifty ones
/// only where those before them do not fit well? What recomputes more runs the same kernels and
/// others in the same order: it is never faster. `least` finds the same best plan for less work.
enum class Recomputations : std::uint8_t { all, least };

/// A step whose collectives and transfers share links.
struct SharedStep {
  Time step{};
  Time contention{};       // of it, beyond what everything takes alone
  std::string evaluation;  // "events" or "maps"
};

/// A plan that fits, with what decides about it.
struct Candidate {
  PlacedPlan placed;
  models::Estimate estimate;         // as the search sees it: each collective next to its siblings
  std::optional<SharedStep> shared;  // of the best plans of an answer, where that was asked for
  /// Other plans on as many nodes with the same step to the picosecond and the same memory to the
  /// byte, of which this is the plainest.
  std::vector<models::Plan> equals;
};

/// The plan that lacks least memory.
struct NearMiss {
  PlacedPlan placed;
  models::OutOfMemory out_of_memory;
};

struct PlanAnswer {
  /// Best first, those that fit tightly after all others; equal ones the plainest first.
  std::vector<Candidate> fitting;
  std::optional<NearMiss> nearest_miss;
  std::int64_t considered = 0;          // plans of the space
  std::int64_t conflicting = 0;         // not in it, as model or schedule forbid them
  std::int64_t too_large = 0;           // do not fit
  std::int64_t too_large_by_sizes = 0;  // ... and were never lowered: least_memory says so
  std::int64_t passed_over = 0;         // Recomputations::least: another fits and is no slower
  bool stopped = false;                 // before every plan was estimated

  std::int64_t fits() const;   // plans that fit, equal ones counted
  std::int64_t tight() const;  // ... of them those that fit tightly
};

/// Estimates all plans; the answer is the same for any number of threads.
/// Errors  refusal(query): InputError `POINTER: PROBLEM`; cost on a cluster without a price:
///         ContractError
PlanAnswer search_plans(const PlanQuery& query, const Objective& objective, const Workers& workers,
                        Recomputations which = Recomputations::all);

/// Evaluates the first `top` plans with their traffic on links and puts them in that order; what
/// fits tightly stays last. Plans whose traffic is not simulated, or that stay on one node, keep
/// the search's time. Returns why some are not simulated; empty: all are.
std::string share_links(const PlanQuery& query, const Objective& objective, std::size_t top,
                        const Workers& workers, PlanAnswer& answer);
/// The objective's measure, with the step that has been evaluated.
double measure_of(const Objective& objective, const Candidate& candidate);

/// A question of one plan of a query, on the nodes that it takes.
models::Question question_of(const PlanQuery& query, const PlacedPlan& placed);

}  // namespace orrery::scenarios
