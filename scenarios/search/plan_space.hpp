#pragma once
// The plans of a search: every combination of what scenarios/search/dimensions.cpp tries. Leaves
// out uneven cuts other than the stack's own, other schedules than (interleaved) 1F1B, and
// placements other than tensor, data, pipeline.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/plan/conflicts.hpp"
#include "models/prediction/prediction.hpp"
#include "models/software/recipes.hpp"

namespace orrery::scenarios {

/// How many choices are tried.
///   full     micro-batches: divisors up to 16; virtual stages: up to 8 that cut the layers evenly,
///            embedding and head counted as a layer each or not; sequence parallelism on and off;
///            all ZeRO stages of the stack
///   reduced  micro-batches 1, 2, 4; virtual stages 1, 2, 4; sequence parallelism wherever there is
///            tensor parallelism; ZeRO-0 only where the stack has no ZeRO-1
///            context parallelism in the stack's first form
/// Both: tensor up to the GPUs of a node and every divisor as pipeline, where the stack has them;
/// context as powers of two, where a sequence has 8,192 tokens and each rank keeps 2,048 of them;
/// ZeRO-2 and 3 without a pipeline; all three recomputations.
enum class Breadth : std::uint8_t { full, reduced };

/// What is held fixed. The plan's degrees and choices are what is searched.
struct PlanQuery {
  models::Model model;
  hardware::Cluster cluster;
  models::Software software;
  std::int64_t global_batch = 0;
  std::int64_t seq_len = 0;
  models::Precision precision = models::Precision::bf16;
  models::Plan fixed{};  // task, adapters, moments: what every plan has and no search varies
  std::vector<std::string> stated{};  // keys of those that the user gave
  Breadth breadth = Breadth::full;
  double headroom = models::usual_headroom();
};

/// A plan and how many of the cluster's nodes it takes.
struct PlacedPlan {
  models::Plan plan;
  int nodes = 1;
};

struct PlanSpace {
  std::vector<PlacedPlan> plans;  // fewest switches first
  std::int64_t conflicting = 0;   // combinations that model or schedule forbid
};

/// Every plan that uses all of the cluster; of `fewer_nodes`, also those of a half of the nodes, a
/// quarter, and so on.
enum class Extent : std::uint8_t { all_nodes, fewer_nodes };
PlanSpace enumerate_plans(const PlanQuery& query, Extent extent = Extent::all_nodes);

/// What no plan of a query can help: a model that is counted only, a format that the GPU lacks,
/// nodes without a network, a sequence longer than the positions. Pointers as `conflicts` has them.
std::optional<models::Conflict> refusal(const PlanQuery& query);

/// Takes what recipes of the stack fix and neither the search varies nor the user gave, where it
/// goes with the rest of the question's plan. Returns what was taken.
std::vector<models::RecipeChoice> take_recipe(const PlanQuery& query, models::Question& question);

/// A plan with what a query holds fixed.
models::Plan first_plan(const PlanQuery& query);

/// Bytes that the fullest rank holds at least, from sizes alone: its layers' matrices and its share
/// of the vocabulary with gradients and optimizer states, and the libraries. Of frozen matrices,
/// the weights alone.
///   layers n (bytes(weight) / s3 + bytes(gradient) / s2 + o / s1) + context
///   n = h (q + 2k + q + g f) / t
/// q, k, g, f, h  as in count_parameters;  t  tensor
/// s1, s2, s3     data-parallel ranks from that ZeRO stage on, 1 below it
/// o              12 bytes: fp32 master weight and two moments; 8 where weights are fp32; moments
///                perhaps of two bytes or one
/// Never above what `estimate` finds: norms, biases, positions, activations come on top.
Bytes least_memory(const PlanQuery& query, const models::Plan& plan);

}  // namespace orrery::scenarios
