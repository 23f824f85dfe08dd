#pragma once
// How a model is parallelised over a cluster and scheduled: degrees, batches, precision,
// recomputation, sharding of state. models/plan/fields_of_*.cpp have one row for each field: how it
// is read, written and named. Model, cluster and software stack are left out.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "models/model/model.hpp"
#include "models/plan/choices.hpp"
#include "models/schedules/csv.hpp"
#include "sim/input/document.hpp"
#include "sim/words.hpp"

namespace orrery::models {

/// How ranks of a context group exchange keys and values.
struct ContextExchange {
  ContextForm form = ContextForm::ring;
  std::int64_t heads = 1;  // of hierarchical: ranks of a group that exchange for heads
};

/// How each pipeline stage is made of chunks, and the order in which it computes them.
struct StageChoices {
  std::int64_t virtual_stages = 1;   // chunks of a stage
  std::string schedule = "1f1b";     // name of a built-in pipeline schedule, or a file
  ScheduleTable table;               // contents of that file; empty: built-in
  std::vector<std::int64_t> layers;  // of each chunk, in model order; empty: even
  bool by_time = false;              // `layers` are derived from predicted times
  bool embedding_counts = false;     // embedding and head count as a layer each
  /// Micro-batches whose weight gradients of the head the last stage defers until it would stand
  /// idle; 0: none.
  std::int64_t deferred_head_gradients = 0;
};

/// How a layer's experts are distributed, and how tokens reach them.
struct ExpertChoices {
  std::int64_t ranks = 1;   // over which the experts of a layer are distributed
  std::int64_t tensor = 0;  // ranks over which each expert is cut; 0: as Plan::tensor
  Dispatcher dispatcher = Dispatcher::all_to_all;
  ExpertOverlap overlap = ExpertOverlap::none;
  bool permute_fusion = false;  // one kernel to order tokens by expert, one to restore the order
  double capacity = 0;  // slots of each expert over its mean rows, excess dropped; 0: dropless
  bool pad_to_capacity = true;  // slots without a row are sent and multiplied, too
  double imbalance = 1;         // of dropless routing: rows of the busiest rank over the mean
  std::vector<double> layer_imbalance;  // of each layer with experts; empty: all alike
  double room = 1;  // of dropless routing: slots of each expert over its mean rows, or `imbalance`
                    // if that is more
  ExpertGemms gemms = ExpertGemms::grouped;
};

/// What one step is fed.
struct BatchSizes {
  std::int64_t micro = 1;   // sequences that a replica computes at once
  std::int64_t global = 1;  // sequences of a step, over all replicas
  std::int64_t seq_len = 0;
  /// Lengths of the documents that are packed into a sequence, equally frequent: tokens attend only
  /// to their own document. Empty: one document as long as the sequence.
  std::vector<std::int64_t> documents;
};

/// Formats of the arithmetic, and what low precision changes besides.
struct FormatChoices {
  Precision precision = Precision::bf16;
  StatePrecision state = StatePrecision::full;
  GradientFormat gradient = GradientFormat::of_stack;
  bool kbit_upcast = false;  // next to 4-bit weights: other parameters and activations in fp32
  bool low_precision_gather = false;      // ZeRO gathers weights in the 8 bits of the GEMMs
  bool low_precision_attention = false;   // attention's GEMMs in fp8, one scale for each tensor
  bool low_precision_activation = false;  // inputs of gated SiLU are kept in 8 bits for backward
  bool transpose_weights = false;  // 8-bit weights: transposed in every backward, no copy is kept
  bool hadamard_pass = false;      // nvfp4: copies for weight gradients in a pass of their own
  WordSet<AmaxKernel> fused_amax;  // kernels that find the largest number of what they write
  std::int64_t start_layers_bf16 = 0;  // first layers of the model that stay in bf16
  std::int64_t end_layers_bf16 = 0;    // last layers of the model that stay in bf16
};

/// Kernels other than those that the stack would take.
struct PlanKernels {
  AttentionKernel attention = AttentionKernel::of_stack;
  bool fused_cross_entropy = false;  // head GEMMs and loss piece by piece: no logits are kept
  bool graphs = false;               // kernels of a block are launched as CUDA graphs
  std::int64_t mlp_tiles = 1;        // pieces of its tokens that the MLP computes one after another
};

/// Which activations are computed again in backward.
struct RecomputeChoices {
  Recompute kind = Recompute::none;
  WordSet<RecomputeModule> modules{RecomputeModule::core_attn};  // of selective
  std::int64_t layers = 0;                 // first layers of each chunk that recompute; 0: all
  std::int64_t every = 1;                  // of those layers, one in every so many recomputes
  WordSet<RecomputeModule> elsewhere;      // modules that the other layers recompute
  std::int64_t partial_micro_batches = 0;  // of those in flight: the rest recomputes all layers
};

/// What leaves the GPU's memory.
struct OffloadChoices {
  Offload state = Offload::none;
  OffloadDevice device = OffloadDevice::cpu;
  std::int64_t layers = 0;  // first layers of each chunk whose activations are offloaded
  double share = 1;         // of the optimizer state, where that alone is offloaded
};

struct OptimizerChoices {
  Optimizer kind = Optimizer::adam;
  Moments moments = Moments::full;
  bool paged = false;  // state in unified memory: what does not fit on the GPU is on the host
};

/// Adapters next to frozen matrices, of the tasks that train them.
struct AdapterChoices {
  std::int64_t rank = 16;
  WordSet<LoraTarget> targets{LoraTarget::qkv, LoraTarget::projection};
  bool dropout = false;  // on the adapters' input
};

/// How the state of a model is sharded over data-parallel ranks.
struct ShardingChoices {
  Zero zero = Zero::none;
  std::int64_t ranks = 0;     // of `data` over which state is sharded, with copies along the others
                              // (HSDP); 0: all
  bool reshard = true;        // ZeRO-3: weights are freed after forward and gathered again
  std::int64_t prefetch = 1;  // ZeRO-3: units gathered ahead of the one that runs
  Bytes bucket{};             // size of a gradient bucket; 0: the software's
};

/// Compression of gradients between data-parallel ranks.
struct CompressionChoices {
  Compression kind = Compression::none;
  double share = 0.01;  // share of a bucket's gradients that top-k sends, at least one
  /// Columns of power-sgd's factors.
  /// Source  Vogels et al. 2019, section 5: 4 for language models
  std::int64_t rank = 4;
};

/// What runs concurrently.
struct OverlapChoices {
  bool tensor = true;               // tensor-parallel collectives with GEMMs, if the stack can
  bool gradients = true;            // data-parallel reduction with backward
  std::optional<bool> gathers;      // of parameters with forward; nullopt: as reductions
  std::optional<bool> transfers{};  // between stages, with kernels; nullopt: the stack's

  bool with_forward() const { return gathers.value_or(gradients); }
};

/// All degrees and choices of one training step, complete: read_plan fills in what was left out.
struct Plan {
  Task task = Task::pretrain;
  AdapterChoices adapters;
  std::int64_t tensor = 1;
  bool sequence_parallel = false;
  std::int64_t context = 1;  // ranks that share a sequence
  ContextExchange context_exchange;
  std::int64_t pipeline = 1;
  StageChoices stages;
  std::int64_t data = 1;
  ShardingChoices sharding;
  ExpertChoices experts;
  RankOrder rank_order = RankOrder::data_first;
  BatchSizes batch;
  FormatChoices formats;
  PlanKernels kernels;
  OptimizerChoices optimizer;
  RecomputeChoices recompute;
  OffloadChoices offload;
  OverlapChoices overlap;
  CompressionChoices compression;

  /// "tp-cp-ep-pp-dp"; empty: the usual order, in which a stage's ranks are adjacent.
  std::string_view own_rank_order() const {
    return rank_order == RankOrder{} ? std::string_view{} : word_of(rank_order_words, rank_order);
  }
  std::int64_t gpus() const { return tensor * context * pipeline * data; }
  /// Ranks that hold the same parameters, each with gradients of its own tokens.
  std::int64_t replicas() const { return context * data; }
  /// Data-parallel ranks over which one copy of the state is sharded.
  std::int64_t data_shards() const { return sharding.ranks > 0 ? sharding.ranks : data; }
  std::int64_t micro_batches() const { return batch.global / (batch.micro * data); }
  std::int64_t chunks() const { return pipeline * stages.virtual_stages; }
  PipelineShape shape() const { return {pipeline, stages.virtual_stages, micro_batches()}; }
};

/// A member of a group of a plan: member_at<&Plan::offload, &OffloadChoices::layers>(plan).
template <auto... path, class OfPlan>
constexpr auto& member_at(OfPlan& plan) {
  return (plan.*....*path);
}

template <auto... path>
using MemberAt = std::remove_reference_t<decltype(member_at<path...>(std::declval<Plan&>()))>;

/// Reads a plan from its JSON object. A field that is left out is derived or a default, as its row
/// of models/plan/fields_of_*.cpp states; most add a sentence to `assumptions`:
/// `/plan/micro_batch: not stated; 1 assumed`.
/// Errors  unknown keys, wrong types, values out of range, each by name
Plan read_plan(const Node& plan, const Model& model, std::int64_t gpus,
               std::vector<std::string>& assumptions);

/// The command line's form, `tensor=8,pipeline=16,stage_layers=7:8:8:7`, as the JSON object that
/// read_plan takes. `flag` is what errors name.
/// Errors  `--plan: expected KEY=VALUE, found 'tensor'`; a key given twice
Json plan_from_text(std::string_view text, std::string_view flag = "--plan");

/// Every field of a complete plan; read_plan reads it back without an assumption.
Json to_json(const Plan& plan);
/// The command line's form of a plan, without most defaults; plan_from_text and read_plan turn it
/// back into the same plan.
std::string to_text(const Plan& plan);

/// The most GPUs that a plan may use.
inline constexpr std::int64_t most_gpus = std::int64_t{1} << 20;

}  // namespace orrery::models
