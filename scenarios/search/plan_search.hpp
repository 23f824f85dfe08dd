#pragma once
// The plan search: branch and bound over the plans of a space. Every plan gets a lower bound of the
// objective and of its memory (step_bound.hpp); plans are then estimated in the order of their
// bounds until no other can be among those that are wanted. Plans that do not fit are counted, and
// the one that lacks least memory is named.

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "scenarios/search/objective.hpp"
#include "scenarios/search/space/plan_space.hpp"
#include "scenarios/search/workers.hpp"

namespace orrery::scenarios {

class BlockShapes;

/// How many of the best plans a search must find. It also finds, of each way to cut the model
/// (tensor, pipeline, micro-batch) that may be within the spread of errors (comparison.hpp),
/// whether it is; the best of each of `named_kinds`; and all that fit tightly and are faster.
struct Wanted {
  static constexpr std::size_t every = std::numeric_limits<std::size_t>::max();
  std::size_t best = every;
  /// Ends the search earlier: when no plan can be faster than the best by more than this share.
  double gap = 0;
  bool rivals = true;  // false: the best alone, without other ways to cut the model and named kinds
  /// Also all plans of the Pareto front of the objective and this one.
  const Objective* against = nullptr;
  std::optional<Time> longest_step{};  // plans with a longer step are not wanted
  BlockShapes* shapes = nullptr;       // of searches before on such nodes; receives this one's
};

/// Plans of which the best is named, too, if the best of all is none of them.
struct PlanKind {
  std::string_view key;   // in JSON
  std::string_view name;  // in a sentence
  bool (*has)(const PlanQuery& query, const PlacedPlan& placed);
};
std::span<const PlanKind> named_kinds();

/// A step evaluated with collectives and transfers sharing links.
struct SharedStep {
  models::Estimate figures;
  Time contention{};       // the part that sharing links adds
  std::string evaluation;  // "events" or "maps"
  std::vector<models::WaterfallPart> waterfall;
};

/// A plan that fits, with the figures that rank it.
struct Candidate {
  PlacedPlan placed;
  models::Estimate estimate;         // static: without contention between different collectives
  std::optional<SharedStep> shared;  // for the plans shown, all or none of those on several nodes
  /// Of plans on several nodes that were not evaluated so: a lower bound of the objective's measure
  /// with traffic on links, by the step in which nothing shares one.
  std::optional<double> least_shared;
  /// Other plans with the same cut on as many nodes whose step is the same to 0.01 % and whose
  /// memory to 0.5 %, so that a free choice is all that differs; next to a Pareto front, to the
  /// picosecond and the byte. This one is the best of them: with fewest FLOPs where steps are
  /// equal.
  std::vector<models::Plan> equals;

  /// The figures that rank it, of one evaluation: on shared links if that was done.
  const models::Estimate& figures() const { return shared ? shared->figures : estimate; }
};

/// The plan that lacks least memory.
struct NearMiss {
  PlacedPlan placed;
  models::OutOfMemory out_of_memory;
};

/// Tensor, pipeline and micro-batch sizes: a way to cut the model.
using ModelCut = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
ModelCut cut_of(const models::Plan& plan);

/// A plan that was not estimated, and the lower bound that rules it out.
struct OpenPlan {
  ModelCut cut;
  double bound = 0;  // of the objective
};

struct PlanAnswer {
  /// Best first, those that fit tightly after all others; equal ones by fewer FLOPs.
  std::vector<Candidate> fitting;
  std::optional<NearMiss> nearest_miss;
  std::int64_t considered = 0;          // plans of the space
  std::int64_t conflicting = 0;         // not in it: the model or the schedule forbids them
  std::int64_t too_large = 0;           // do not fit
  std::int64_t too_large_by_sizes = 0;  // ... by memory_floor alone, without lowering
  std::int64_t too_slow = 0;            // longer than Wanted::longest_step; some by their bound
  std::optional<Candidate> fastest_too_slow;  // of those that were estimated and fit
  std::int64_t passed_over = 0;               // not estimated: their lower bound is above the best
  bool stopped = false;                       // before the search ended
  std::vector<SearchedValues> searched;
  std::vector<RuledOut> ruled_out;  // of `conflicting`
  /// Lower bounds of the objective's measure of plans that were not estimated, ascending.
  std::vector<OpenPlan> open;
  bool bounded = false;  // `open` is known: the search was not stopped before

  std::int64_t fits() const;   // plans that fit, including merged equals
  std::int64_t tight() const;  // ... of these, plans that fit tightly
  /// The least lower bound among plans that were not estimated.
  double least_open() const;
};

/// Estimates all plans; the answer is the same for any number of threads.
/// Errors  refusal(query): InputError `POINTER: PROBLEM`; cost on a cluster without a price:
///         ContractError
PlanAnswer search_plans(const PlanQuery& query, const Objective& objective, const Workers& workers,
                        Wanted wanted = {});

/// Evaluates with their traffic on links the plans that a report shows: the first `top`, the best
/// of each way to cut the model that cannot be distinguished from the first, and of each named
/// kind. Then those that may be better than the best of these, by the step in which nothing shares
/// a link, until there is none or `most_further` were evaluated. Sorts all of them by the result;
/// plans that fit tightly stay last. Nothing leaves one node, so its plans keep the search's
/// figures. If the traffic of any plan cannot be simulated, all keep them, so that all are compared
/// by one evaluation; likewise, and `stopped`, if the workers' progress asks to stop. Returns why;
/// empty: all are simulated.
std::string share_links(const PlanQuery& query, const Objective& objective, std::size_t top,
                        const Workers& workers, PlanAnswer& answer);
inline constexpr std::size_t most_further = 32;

/// The Pareto front of two objectives among an answer's plans that fit well, the best of the first
/// one first: each later plan is better in the second. Measures are static.
std::vector<const Candidate*> front_of(const PlanAnswer& answer, const Objective& objective,
                                       const Objective& against);

/// The best plan of a kind among those that fit well; null if the best of all is of the kind, or if
/// there is none.
const Candidate* best_of_kind(const PlanQuery& query, const PlanAnswer& answer,
                              const PlanKind& kind);

/// The objective's measure by the figures that rank a plan.
double measure_of(const Objective& objective, const Candidate& candidate);
/// Whether its figures are those with traffic on links: on one node nothing leaves it.
bool is_on_links(const Candidate& plan);

/// The question for one plan of a query, on the nodes that it uses; what its data assumes is among
/// its assumptions.
models::Question question_of(const PlanQuery& query, const PlacedPlan& placed);
/// The lane of a plan's input next to its step; nothing where the query states no data.
std::optional<models::DataAnswer> lane_of(const PlanQuery& query, const PlacedPlan& placed);
/// Reads the query's data for the plan and the cluster of a question: how many nodes read depends
/// on them. Errors  InputError `--data:/POINTER: PROBLEM`
void take_data(const PlanQuery& query, models::Question& question);

}  // namespace orrery::scenarios
