#pragma once
// How a model is cut over a cluster and scheduled: degrees, batches, precision, recomputation.
// models/plan/fields_of_*.cpp have one row for each field: how it is read, written and named.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/dtype.hpp"
#include "models/model/model.hpp"
#include "models/plan/choices.hpp"
#include "models/schedules/csv.hpp"
#include "sim/input/document.hpp"
#include "sim/words.hpp"

namespace orrery::models {

enum class Recompute : std::uint8_t { none, selective, full };
inline constexpr Words<Recompute, 3> recompute_words{
    {{Recompute::none, "none"}, {Recompute::selective, "selective"}, {Recompute::full, "full"}}};

/// What data-parallel ranks shard among them: optimizer state; and gradients; and parameters.
/// Source  Rajbhandari et al. 2020, "ZeRO", arXiv 1910.02054
enum class Zero : std::uint8_t { none, one, two, three };
inline constexpr Words<Zero, 4> zero_words{
    {{Zero::none, "0"}, {Zero::one, "1"}, {Zero::two, "2"}, {Zero::three, "3"}}};

/// How ranks that share a sequence attend to all of it: every rank gathers all keys and values,
/// each with one piece of the sequence (contiguous: the last has the most to attend to) or an early
/// and a late one; or they travel round the ranks next to attention, each rank with an early and a
/// late piece of the sequence, so that causal attention is as much work on each; or ranks trade
/// their pieces of the sequence for a share of the heads; or the last inside groups and a ring of
/// the groups. Source  Dubey et al. 2024, "The Llama 3 herd of models", arXiv 2407.21783,
/// section 3.3.2; Liu et
///         al. 2023, "Ring attention", arXiv 2310.01889; Jacobs et al. 2023, "DeepSpeed Ulysses",
///         arXiv 2309.14509; Fang & Zhao 2024, "USP", arXiv 2405.07719
enum class ContextForm : std::uint8_t { all_gather, contiguous, ring, ulysses, hierarchical };
inline constexpr Words<ContextForm, 5> context_form_words{
    {{ContextForm::all_gather, "all-gather"},
     {ContextForm::contiguous, "contiguous"},
     {ContextForm::ring, "ring"},
     {ContextForm::ulysses, "ulysses"},
     {ContextForm::hierarchical, "hierarchical"}}};

/// What the host keeps of a rank's state: nothing; the optimizer's, whose step it computes; and the
/// shards of parameters, which come back before they are gathered.
/// Source  Ren et al. 2021, "ZeRO-Offload", arXiv 2101.06840; Rajbhandari et al. 2021,
///         "ZeRO-Infinity", arXiv 2104.07857
enum class Offload : std::uint8_t { none, optimizer, parameters };
inline constexpr Words<Offload, 3> offload_words{{{Offload::none, "none"},
                                                  {Offload::optimizer, "optimizer"},
                                                  {Offload::parameters, "parameters"}}};

/// How data-parallel ranks shrink their gradients before reducing them: not at all; to half-width
/// numbers; to the largest of them with their places; or to two factors of low rank, of each bucket
/// as one matrix (PyTorch's batched_powerSGD_hook). What those two leave out is added to the next
/// step's gradients.
/// Source  Lin et al. 2018, "Deep gradient compression", arXiv 1712.01887; Vogels et al. 2019,
///         "PowerSGD", arXiv 1905.13727
enum class Compression : std::uint8_t { none, fp16, top_k, power_sgd };
inline constexpr Words<Compression, 4> compression_words{{{Compression::none, "none"},
                                                          {Compression::fp16, "fp16"},
                                                          {Compression::top_k, "top-k"},
                                                          {Compression::power_sgd, "power-sgd"}}};

/// fp8 has one scale for a tensor, of earlier steps (delayed) or of its own numbers (current);
/// fp8-block, mxfp8 and nvfp4 have one for each block (models/operations/quantisation.hpp).
enum class Precision : std::uint8_t {
  fp32,
  tf32,
  fp16,
  bf16,
  fp8,
  fp64,
  fp8_current,
  fp8_block,
  mxfp8,
  nvfp4
};
inline constexpr Words<Precision, 10> precision_words{{{Precision::fp32, "fp32"},
                                                       {Precision::tf32, "tf32"},
                                                       {Precision::fp16, "fp16"},
                                                       {Precision::bf16, "bf16"},
                                                       {Precision::fp8, "fp8"},
                                                       {Precision::fp64, "fp64"},
                                                       {Precision::fp8_current, "fp8-current"},
                                                       {Precision::fp8_block, "fp8-block"},
                                                       {Precision::mxfp8, "mxfp8"},
                                                       {Precision::nvfp4, "nvfp4"}}};

/// How tokens reach the ranks of their experts: every copy in an all-to-all of the collective
/// library; or once per node that has any of their experts, and from there to each (DeepEP and
/// HybridEP, which inside one NVLink domain differ in their kernels alone).
/// Source  Zhao et al. 2025, "Insights into DeepSeek-V3", arXiv 2505.09343, section 4.3
enum class Dispatcher : std::uint8_t { all_to_all, deepep, hybridep };
inline constexpr Words<Dispatcher, 3> dispatcher_words{{{Dispatcher::all_to_all, "alltoall"},
                                                        {Dispatcher::deepep, "deepep"},
                                                        {Dispatcher::hybridep, "hybridep"}}};

/// What runs while tokens travel to their experts and back: nothing, the shared experts, or the
/// other direction of another micro-batch.
enum class ExpertOverlap : std::uint8_t { none, shared, micro_batches };
inline constexpr Words<ExpertOverlap, 3> expert_overlap_words{
    {{ExpertOverlap::none, "none"},
     {ExpertOverlap::shared, "shared"},
     {ExpertOverlap::micro_batches, "micro-batches"}}};

/// All degrees and choices of one training step, complete: read_plan fills what was left out.
struct Plan {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t virtual_stages = 1;
  std::int64_t context = 1;  // ranks that share a sequence
  ContextForm context_form = ContextForm::ring;
  std::int64_t context_heads = 1;  // of a hierarchy: ranks of a group that trade for heads
  std::int64_t data = 1;
  bool sequence_parallel = false;
  std::string schedule = "1f1b";   // a name of the table of schedules, or a file
  ScheduleTable slots;             // ... and what that file says
  std::int64_t expert = 1;         // ranks that share a layer's experts among them
  std::int64_t expert_tensor = 0;  // ranks that cut each expert; 0: as `tensor`
  Dispatcher dispatcher = Dispatcher::all_to_all;
  ExpertOverlap expert_overlap = ExpertOverlap::none;
  bool permute_fusion = false;  // one kernel puts tokens in the order of experts, one back
  double capacity = 0;   // rows of each expert over their mean, padded and dropped; 0: dropless
  double imbalance = 1;  // of dropless routing: rows of the busiest rank over the mean
  std::int64_t micro_batch = 1;
  std::int64_t global_batch = 1;
  std::int64_t seq_len = 0;
  Precision precision = Precision::bf16;
  Recompute recompute = Recompute::none;
  WordSet<RecomputeModule> recompute_modules{RecomputeModule::core_attn};  // of selective
  std::int64_t recompute_layers = 0;  // first layers of each chunk that recompute; 0: all
  std::int64_t recompute_every = 1;   // of those, the first of every so many
  std::int64_t offload_layers = 0;    // first layers of each chunk whose activations the host keeps
  Moments moments = Moments::full;
  bool fused_cross_entropy = false;  // the head's products and the loss by pieces: no logits kept
  Task task = Task::pretrain;
  std::int64_t lora_rank = 16;
  WordSet<LoraTarget> lora_targets{LoraTarget::qkv, LoraTarget::projection};
  bool lora_dropout = false;  // on the adapters' input
  /// Lengths of the documents that are packed into a sequence, equally frequent: attention sees no
  /// other document's tokens. Empty: one document as long as the sequence.
  std::vector<std::int64_t> sequence_lengths;
  bool low_precision_gather = false;  // ZeRO gathers the weights in the products' 8 bits
  Zero zero = Zero::none;
  std::int64_t data_shard = 0;  // ranks of `data` that hold a share each, copied along the others
                                // (HSDP); 0: all
  bool reshard = true;          // of ZeRO-3: weights are freed after forward and gathered again
  std::int64_t prefetch = 1;    // of ZeRO-3: units gathered ahead of the one that runs
  Offload offload = Offload::none;
  Compression compression = Compression::none;  // of gradients between data-parallel ranks
  double compression_share = 0.01;  // of a bucket's gradients that top-k sends, at least one
  /// Columns of power-sgd's factors.
  /// Source  Vogels et al. 2019, section 5: 4 for language models
  std::int64_t compression_rank = 4;
  bool overlap_gradients = true;           // data-parallel reduction concurrently with backward
  Bytes bucket{};                          // gradient bucket; 0: the software's
  std::vector<std::int64_t> stage_layers;  // uneven: per chunk, in model order; empty: even
  bool layers_by_time = false;             // stage_layers follow from prices
  bool embedding_counts = false;           // embedding and head take a layer's slot each
  bool cuda_graphs = false;                // kernels of a block are launched together

  std::int64_t gpus() const { return tensor * context * pipeline * data; }
  /// Ranks that hold the same parameters: each has gradients of its own tokens.
  std::int64_t replicas() const { return context * data; }
  /// Data-parallel ranks that share one copy of what is sharded.
  std::int64_t data_shards() const { return data_shard > 0 ? data_shard : data; }
  std::int64_t micro_batches() const { return global_batch / (micro_batch * data); }
  std::int64_t chunks() const { return pipeline * virtual_stages; }
  PipelineShape shape() const { return {pipeline, virtual_stages, micro_batches()}; }
};

/// Ranks that cut each expert.
/// Source  Megatron-LM, --expert-tensor-parallel-size: by default tensor-model-parallel-size
inline std::int64_t expert_tensor_of(const Plan& plan) {
  return plan.expert_tensor > 0 ? plan.expert_tensor : plan.tensor;
}

/// ZeRO-2 and ZeRO-3 (FSDP): more than the optimizer's state is sharded.
inline bool shards_gradients(const Plan& plan) {
  return plan.replicas() > 1 && (plan.zero == Zero::two || plan.zero == Zero::three);
}

/// A context group's two factors: `heads` ranks trade pieces of the sequence for heads, and keys
/// and values are gathered or travel between `pieces` such groups.
struct ContextSplit {
  std::int64_t heads = 1, pieces = 1;
};
ContextSplit context_split(const Plan& plan);
/// Are all keys and values gathered, rather than passed round?
inline bool gathers_keys(const Plan& plan) {
  return plan.context_form == ContextForm::all_gather ||
         plan.context_form == ContextForm::contiguous;
}

/// Adapters alone are trained.
inline bool trains_adapters(const Plan& plan) {
  return plan.task == Task::lora || plan.task == Task::qlora;
}

/// Tokens of a document as attention's work counts them: the mean over tokens of their document's
/// length, sum l^2 / sum l; seq_len where nothing is packed.
std::int64_t attended_length(const Plan& plan);

/// The formats of a precision: what GEMMs compute in; what activations and working weights are
/// stored in (fp8 trains with bf16 storage); and what master weights, moments, the loss and its
/// statistics are kept in.
hardware::DType compute_dtype(Precision precision);
hardware::DType storage_dtype(Precision precision);
hardware::DType state_dtype(Precision precision);

/// A conflict inside a plan or between plan, model and cluster: the pointer of the field that is
/// wrong (relative to the plan; empty when it is the model) and one clear sentence.
struct Conflict {
  std::string pointer;  // "/tensor"
  std::string problem;  // "tensor 3 does not divide the model's 32 attention heads"
};

/// Reads the JSON object. What is left out is derived or a default, as its row of
/// models/plan/fields.cpp says, most with a sentence of `assumptions`: `/plan/micro_batch: 1 taken
/// as default`.
/// Errors  unknown keys, wrong types, values out of range, each by name
Plan read_plan(const Node& plan, const Model& model, std::int64_t gpus,
               std::vector<std::string>& assumptions);

/// The command line's form, `tensor=8,pipeline=16,stage_layers=7:8:8:7`, as the JSON object that
/// read_plan takes. Errors: `--plan: expected KEY=VALUE, found 'tensor'`, a key given twice.
Json plan_from_text(std::string_view text);

/// Every field of a complete plan; read_plan reads it back without an assumption.
Json to_json(const Plan& plan);
/// The same in the command line's form, without the defaults that go without saying:
/// plan_from_text and read_plan make the same plan of it.
std::string to_text(const Plan& plan);

/// Gradients that top-k sends of a bucket: max(1, floor(share x elements)).
std::int64_t kept_by_top_k(const Plan& plan, std::int64_t elements);

/// A bucket as the matrix that PowerSGD factors: [rows, columns] ~ [rows, rank] x [rank, columns].
///   columns = ceil(sqrt(elements)), rows = ceil(elements / columns); zeros pad the last row
struct LowRankShape {
  std::int64_t rows = 0, columns = 0, rank = 0;  // rank: the plan's, at most the shorter side
};
LowRankShape low_rank_shape(const Plan& plan, std::int64_t elements);

inline std::string_view name(Precision precision) {
  return word_of(precision_words, precision);
}
inline std::string_view name(Recompute recompute) {
  return word_of(recompute_words, recompute);
}
inline std::string_view name(Compression compression) {
  return word_of(compression_words, compression);
}

/// The most micro-batches of one replica's step, and the most times that all stages together run a
/// chunk forward: a step's list of instructions grows with both, and is gone through one by one.
inline constexpr std::int64_t most_micro_batches = std::int64_t{1} << 16;
inline constexpr std::int64_t most_forwards = std::int64_t{1} << 21;
/// The most GPUs that a plan may use.
inline constexpr std::int64_t most_gpus = std::int64_t{1} << 20;

/// Every conflict, in a fixed order; empty when the plan can be lowered. Not a conflict: a
/// vocabulary that `tensor` does not divide (it is padded), more tensor ranks than key-value heads
/// as long as one is a multiple of the other (heads are replicated).
std::vector<Conflict> conflicts(const Plan& plan, const Model& model, std::int64_t gpus,
                                const Registry<Schedule>& schedules = builtin_schedules());

/// Layers on each chunk in model order (stage of chunk c is c mod pipeline): `stage_layers` where
/// given, otherwise as even as possible. What remains of an uneven division goes one layer each to
/// chunks 1, 2, ... in model order, and to chunk 0 only when all between first and last have one:
/// first and last also hold embedding and head. With `embedding_counts`, those two take a layer's
/// slot each: 126 layers on 16 chunks are 7, 8 x 14, 7.
std::vector<std::int64_t> layers_per_chunk(const Plan& plan, const Model& model);

}  // namespace orrery::models
