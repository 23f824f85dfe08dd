#pragma once
// The plan search: estimates all plans of a space and sorts them. Plans that do not fit are
// counted, and the one that lacks least memory is named.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/search/objective.hpp"
#include "scenarios/search/plan_space.hpp"
#include "scenarios/search/workers.hpp"

namespace orrery::scenarios {

/// Among plans that differ only in recomputation: whether all are estimated, or those with more
/// recomputation only if the ones with less do not fit well. More recomputation adds kernels and is
/// never faster, so `least` finds the same best plan with less work.
enum class Recomputations : std::uint8_t { all, least };

/// A step evaluated with collectives and transfers sharing links.
struct SharedStep {
  Time step{};
  Time contention{};       // the part that sharing links adds
  std::string evaluation;  // "events" or "maps"
};

/// A plan that fits, with the figures that rank it.
struct Candidate {
  PlacedPlan placed;
  models::Estimate estimate;         // static: without contention between different collectives
  std::optional<SharedStep> shared;  // for the best plans, if asked for
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
  std::int64_t conflicting = 0;         // not in it: the model or the schedule forbids them
  std::int64_t too_large = 0;           // do not fit
  std::int64_t too_large_by_sizes = 0;  // ... by least_memory alone, without lowering
  std::int64_t passed_over = 0;         // not estimated: less recomputation fits well
  bool stopped = false;                 // before every plan was estimated

  std::int64_t fits() const;   // plans that fit, including merged equals
  std::int64_t tight() const;  // ... of these, plans that fit tightly
};

/// Estimates all plans; the answer is the same for any number of threads.
/// Errors  refusal(query): InputError `POINTER: PROBLEM`; cost on a cluster without a price:
///         ContractError
PlanAnswer search_plans(const PlanQuery& query, const Objective& objective, const Workers& workers,
                        Recomputations which = Recomputations::all);

/// Evaluates the first `top` plans with their traffic on links and sorts them by the result; plans
/// that fit tightly stay last. Plans whose traffic cannot be simulated, or that use one node, keep
/// the search's time. Returns why some are not simulated; empty: all are.
std::string share_links(const PlanQuery& query, const Objective& objective, std::size_t top,
                        const Workers& workers, PlanAnswer& answer);
/// The objective's measure, scaled to the step on shared links if that was evaluated.
double measure_of(const Objective& objective, const Candidate& candidate);

/// The question for one plan of a query, on the nodes that it uses.
models::Question question_of(const PlanQuery& query, const PlacedPlan& placed);

}  // namespace orrery::scenarios
