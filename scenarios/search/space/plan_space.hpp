#pragma once
// The plans of a search: every combination of what scenarios/search/space/dimensions.cpp tries.
// Leaves out uneven cuts other than the stack's own, schedules other than (interleaved) 1F1B and
// those that the stack runs, and placements other than tensor, data, pipeline.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
///            tensor parallelism; ZeRO-0 only where the stack has no ZeRO-1;
///            context parallelism in the stack's first form
/// Both: tensor up to the GPUs of a node and every divisor as pipeline, where the stack has them;
/// context as powers of two, where a sequence has 8,192 tokens and each rank keeps 2,048 of them;
/// ZeRO-2 and 3 without a pipeline; all three recomputations. Full also tries ZeRO-2 and 3 in a
/// pipeline where the stack has them there, ZeRO-3 inside a node (HSDP) and with weights kept after
/// forward, and optimizer state and parameters on the host where the model's state does not fit
/// otherwise; of plans that recompute in full, a part of the layers; of plans that recompute
/// selectively, every set of the stack's modules.
enum class Breadth : std::uint8_t { full, reduced };

/// A value that no plan of a search may have.
struct ExcludedValue {
  std::string key;  // of the plan's field
  Json value;       // as value_in (dimensions.hpp) writes it
};

/// What a search holds fixed; it varies the plan's degrees and choices.
struct PlanQuery {
  models::Model model;
  hardware::Cluster cluster;
  models::Software software;
  std::int64_t global_batch = 0;
  std::int64_t seq_len = 0;
  models::Precision precision = models::Precision::bf16;
  models::Plan fixed{};               // task, adapters, moments: not varied
  std::vector<std::string> stated{};  // keys of `fixed` that the user gave: the only value tried
  std::vector<ExcludedValue> excluded{};
  Breadth breadth = Breadth::full;
  double headroom = models::usual_headroom();
  std::optional<Json> data{};  // member `data` of a scenario; nothing: every batch is ready
  std::vector<std::string> data_assumptions{};  // of what was measured of it
};

/// A plan and the number of the cluster's nodes that it uses.
struct PlacedPlan {
  models::Plan plan;
  int nodes = 1;
  std::size_t number = 0;  // in the order of enumeration
};

/// The values of a field among the plans of a space, as enumerated.
struct SearchedValues {
  std::string_view key;
  std::vector<Json> values;
};

/// Combinations that are in conflict at one field.
struct RuledOut {
  std::string pointer;  // "/expert"
  std::string problem;  // of the first one
  std::int64_t count = 0;
};

struct PlanSpace {
  /// As enumerated: of plans that tie, the plainest comes first.
  std::vector<PlacedPlan> plans;
  std::int64_t conflicting = 0;          // combinations that model or schedule forbid
  std::vector<RuledOut> ruled_out;       // by the first conflict of each
  std::vector<SearchedValues> searched;  // by searched field
};

/// all_nodes: plans that use the whole cluster, or, with more than half of it, as many nodes as are
/// a multiple of 2, of 4, of 8 and so on: the others are idle. fewer_nodes: also plans on a half of
/// the nodes, a quarter, and so on.
enum class Extent : std::uint8_t { all_nodes, fewer_nodes };
PlanSpace enumerate_plans(const PlanQuery& query, Extent extent = Extent::all_nodes);

/// Copies of a plan of which all layers recompute everything, of which the first quarter, half and
/// three quarters of those of its longest chunk do: the values of recompute_layers that a full
/// search tries. Empty for other plans, and where the user stated which layers recompute.
std::vector<models::Plan> partly_recomputed(const PlanQuery& query, const models::Plan& plan);
inline constexpr std::string_view recomputed_layers_key = "recompute_layers";

/// Copies of a plan of which all layers recompute selectively, each with another set of modules, of
/// those that the stack's profile lists and the model has: the values of recompute_modules that a
/// full search tries. `activation` is of experts (Megatron-Core's moe_act) and goes with none that
/// recompute whole, `mlp` is of models without experts. Empty for other plans, and where the user
/// stated which modules recompute.
std::vector<models::Plan> with_other_modules(const PlanQuery& query, const models::Plan& plan);
inline constexpr std::string_view recomputed_modules_key = "recompute_modules";

/// Why no plan of a query can run: a model whose parameters are only counted, a format that the GPU
/// lacks, nodes without a network, a sequence longer than the model's positions. Pointers as in
/// `conflicts`.
std::optional<models::Conflict> refusal(const PlanQuery& query);

/// Applies settings of the stack's recipes to fields that neither the search varies nor the user
/// gave, unless they conflict with the rest of the plan. Returns those that were applied.
std::vector<models::RecipeChoice> take_recipe(const PlanQuery& query, models::Question& question);

/// Whether the recipes have such settings, conflicts aside.
bool has_recipe(const PlanQuery& query, const models::Question& question);

/// The plan that enumeration starts from: the fields that the query holds fixed.
models::Plan first_plan(const PlanQuery& query);

/// Lower bound of what a rank holds of so many trained parameters: weights, gradients, optimizer
/// state, each before ZeRO shards it.
///   bytes(weight) / s3 + bytes(gradient) / s2 + o / s1, of each
/// s1, s2, s3  data-parallel ranks from that ZeRO stage on, 1 below it; of experts their own
/// replicas o           12 bytes: fp32 master weight and two moments; 8 where weights are fp32;
/// moments may
///             have two bytes or one; 0 where the state is offloaded
Bytes least_state(const PlanQuery& query, const models::Plan& plan, std::int64_t dense,
                  std::int64_t experts);

/// Lower bound in bytes of the memory of the fullest rank, from sizes alone: its layers' matrices
/// and its share of the vocabulary, with gradients and optimizer states, and the libraries' memory.
/// For frozen matrices, the weights alone.
///   n = h (q + 2k + q + g f) / t  parameters of a layer
/// q, k, g, f, h  as in count_parameters;  t  tensor
/// Never above what `estimate` finds: norms, biases, positions and activations come on top.
Bytes least_memory(const PlanQuery& query, const models::Plan& plan);

}  // namespace orrery::scenarios
