#pragma once
// How a model is cut over a cluster and scheduled: degrees, batches, precision, recomputation.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/dtype.hpp"
#include "models/model/model.hpp"
#include "sim/input/document.hpp"

namespace orrery::models {

enum class Recompute : std::uint8_t { none, selective, full };
/// What data-parallel ranks share among them: optimizer state; and gradients; and parameters.
/// Source  Rajbhandari et al. 2020, "ZeRO", arXiv 1910.02054
enum class Zero : std::uint8_t { none, one, two, three };
/// What data-parallel ranks make of their gradients before they exchange them: nothing; half-width
/// numbers; or the largest of them with their places, the rest kept back for the next step.
/// Source  Lin et al. 2018, "Deep gradient compression", arXiv 1712.01887
enum class Compression : std::uint8_t { none, fp16, top_k };
enum class Precision : std::uint8_t { fp32, tf32, fp16, bf16, fp8, fp64 };

/// All degrees and choices of one training step, complete: read_plan fills what was left out.
struct Plan {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t virtual_stages = 1;
  std::int64_t data = 1;
  bool sequence_parallel = false;
  std::string schedule = "1f1b";  // naive, gpipe, 1f1b, interleaved-1f1b
  std::int64_t micro_batch = 1;
  std::int64_t global_batch = 1;
  std::int64_t seq_len = 0;
  Precision precision = Precision::bf16;
  Recompute recompute = Recompute::none;
  Zero zero = Zero::none;
  Compression compression = Compression::none;  // of gradients between data-parallel ranks
  double compression_share = 0.01;         // of a bucket's gradients that top-k sends, at least one
  bool overlap_gradients = true;           // data-parallel reduction beside backward
  Bytes bucket{};                          // gradient bucket; 0: the software's
  std::vector<std::int64_t> stage_layers;  // uneven: per chunk, in model order; empty: even
  bool embedding_counts = false;           // embedding and head take a layer's slot each
  bool cuda_graphs = false;                // kernels of a block are launched together

  std::int64_t gpus() const { return tensor * pipeline * data; }
  std::int64_t micro_batches() const { return global_batch / (micro_batch * data); }
  std::int64_t chunks() const { return pipeline * virtual_stages; }
};

/// ZeRO-2 and ZeRO-3 (FSDP): more than the optimizer's state is shared out.
inline bool shards_gradients(const Plan& plan) {
  return plan.data > 1 && (plan.zero == Zero::two || plan.zero == Zero::three);
}

constexpr hardware::DType compute_dtype(Precision precision) {
  using hardware::DType;
  constexpr DType of[] = {DType::fp32, DType::tf32, DType::fp16,
                          DType::bf16, DType::fp8,  DType::fp64};
  return of[static_cast<int>(precision)];
}
/// What activations and working weights are stored in (fp8 trains with bf16 storage).
constexpr hardware::DType storage_dtype(Precision precision) {
  using hardware::DType;
  constexpr DType of[] = {DType::fp32, DType::fp32, DType::fp16,
                          DType::bf16, DType::bf16, DType::fp64};
  return of[static_cast<int>(precision)];
}
/// What master weights, moments, the loss and its statistics are kept in.
constexpr hardware::DType state_dtype(Precision precision) {
  return precision == Precision::fp64 ? hardware::DType::fp64 : hardware::DType::fp32;
}

/// A conflict inside a plan or between plan, model and cluster: the pointer of the field that is
/// wrong (relative to the plan; empty when it is the model) and one clear sentence.
struct Conflict {
  std::string pointer;  // "/tensor"
  std::string problem;  // "tensor 3 does not divide the model's 32 attention heads"
};

/// Reads the JSON object. What is left out is derived or a default, which all but compression,
/// embedding_counts and cuda_graphs tell in a sentence of `assumptions`: `/plan/micro_batch: 1
/// taken as default`.
///   tensor, pipeline, virtual_stages, data   degrees; data = gpus / (tensor pipeline)
///   sequence          true: sequence parallelism in the tensor group
///   schedule          naive, gpipe, 1f1b (default), interleaved-1f1b (with virtual stages)
///   micro_batch, global_batch, seq_len       global_batch = data micro_batch pipeline; seq_len is
///                     the model's longest
///   zero              0 to 3: what data-parallel ranks shard; 2 and 3 without a pipeline
///   precision         fp32, tf32, fp16, bf16 (default), fp8, fp64
///   recompute         none (default), selective, full
///   overlap           false: nothing data-parallel beside compute
///   bucket            "25 MB" of gradients that are reduced at once
///   compression       none (default), fp16, top-k: of gradients, with zero 0 and data above 1
///   compression_share of top-k: 0.01 (default) of each bucket's gradients
///   stage_layers      [7, 8, 8, 7]: layers of each chunk
///   embedding_counts  true: embedding and head take a layer's slot each
///   cuda_graphs       true: the host launches what lies between two collectives of a block as one
///                     CUDA graph (models/program/stretches.hpp), where its stack launches ahead
/// Errors  unknown keys, wrong types, and what is known but not simulated (`context` and `expert`
///         above 1, `offload`), each by name
Plan read_plan(const Node& plan, const Model& model, std::int64_t gpus,
               std::vector<std::string>& assumptions);

/// The command line's form, `tensor=8,pipeline=16,stage_layers=7:8:8:7`, as the JSON object that
/// read_plan takes. Errors: `--plan: expected KEY=VALUE, found 'tensor'`, a key given twice.
Json plan_from_text(std::string_view text);

/// Every field of a complete plan; read_plan reads it back without an assumption.
Json to_json(const Plan& plan);
/// The same in the command line's form, without what goes without saying: plan_from_text and
/// read_plan make the same plan of it.
std::string to_text(const Plan& plan);

/// Gradients that top-k sends of a bucket: max(1, floor(share x elements)).
std::int64_t kept_by_top_k(const Plan& plan, std::int64_t elements);

/// Words of the JSON form.
std::string_view name(Precision precision);
std::string_view name(Recompute recompute);
std::string_view name(Compression compression);

/// The most GPUs that a plan may use.
inline constexpr std::int64_t most_gpus = std::int64_t{1} << 20;
/// ... and chunks of a stage: a model has no more layers.
inline constexpr std::int64_t most_virtual_stages = 1 << 12;
/// The most sequences of a step, and tokens of a sequence.
inline constexpr std::int64_t most_batch = std::int64_t{1} << 31;
inline constexpr std::int64_t most_seq_len = std::int64_t{1} << 30;
/// The most micro-batches of one replica's step, and the most times that all stages together run a
/// chunk forward: a step's list of instructions grows with both, and is gone through one by one.
inline constexpr std::int64_t most_micro_batches = std::int64_t{1} << 16;
inline constexpr std::int64_t most_forwards = std::int64_t{1} << 21;

/// Every conflict, in a fixed order; empty when the plan can be lowered. Not a conflict: a
/// vocabulary that `tensor` does not divide (it is padded), more tensor ranks than key-value heads
/// as long as one is a multiple of the other (heads are replicated).
std::vector<Conflict> conflicts(const Plan& plan, const Model& model, std::int64_t gpus);

/// Layers on each chunk in model order (stage of chunk c is c mod pipeline): `stage_layers` where
/// given, otherwise as even as possible. What remains of an uneven division goes one layer each to
/// chunks 1, 2, ... in model order, and to chunk 0 only when all between first and last have one:
/// first and last also hold embedding and head. With `embedding_counts`, those two take a layer's
/// slot each: 126 layers on 16 chunks are 7, 8 x 14, 7.
std::vector<std::int64_t> layers_per_chunk(const Plan& plan, const Model& model);

}  // namespace orrery::models
