#pragma once
// How a model is cut over a cluster and scheduled: degrees, batches, precision, recomputation.
// models/plan/fields_of_*.cpp have one row for each field: how it is read, written and named.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/model/model.hpp"
#include "models/plan/choices.hpp"
#include "models/schedules/csv.hpp"
#include "sim/input/document.hpp"
#include "sim/words.hpp"

namespace orrery::models {

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
  bool tensor_overlap =
      true;  // of the tensor group's collectives with products, by a stack that can
  std::string schedule = "1f1b";   // a name of the table of schedules, or a file
  ScheduleTable slots;             // ... and what that file says
  std::int64_t expert = 1;         // ranks that share a layer's experts among them
  std::int64_t expert_tensor = 0;  // ranks that cut each expert; 0: as `tensor`
  Dispatcher dispatcher = Dispatcher::all_to_all;
  ExpertOverlap expert_overlap = ExpertOverlap::none;
  bool permute_fusion = false;  // one kernel puts tokens in the order of experts, one back
  double capacity = 0;  // rows of each expert over their mean, padded and dropped; 0: dropless
  bool pad_to_capacity = true;  // slots without a row are sent and multiplied, too
  double imbalance = 1;         // of dropless routing: rows of the busiest rank over the mean
  std::vector<double> layer_imbalance;  // of each layer with experts; empty: all alike
  double expert_room = 1;  // ... and each expert's slots over the mean, or as many as `imbalance`
  /// Micro-batches whose gradient of the head's weights the last stage leaves until it has nothing
  /// else to do; 0: none.
  std::int64_t deferred_head_gradients = 0;
  std::int64_t micro_batch = 1;
  std::int64_t global_batch = 1;
  std::int64_t seq_len = 0;
  Precision precision = Precision::bf16;
  Recompute recompute = Recompute::none;
  WordSet<RecomputeModule> recompute_modules{RecomputeModule::core_attn};  // of selective
  std::int64_t recompute_layers = 0;  // first layers of each chunk that recompute; 0: all
  std::int64_t recompute_every = 1;   // of those, the first of every so many
  WordSet<RecomputeModule> recompute_elsewhere;  // what the other layers run again
  std::int64_t offload_layers = 0;  // first layers of each chunk whose activations the host keeps
  Moments moments = Moments::full;
  bool fused_cross_entropy = false;  // the head's products and the loss by pieces: no logits kept
  Task task = Task::pretrain;
  std::int64_t lora_rank = 16;
  WordSet<LoraTarget> lora_targets{LoraTarget::qkv, LoraTarget::projection};
  bool lora_dropout = false;  // on the adapters' input
  /// Lengths of the documents that are packed into a sequence, equally frequent: attention sees no
  /// other document's tokens. Empty: one document as long as the sequence.
  std::vector<std::int64_t> sequence_lengths;
  bool low_precision_gather = false;     // ZeRO gathers the weights in the products' 8 bits
  bool low_precision_attention = false;  // attention's products in fp8, a scale for each tensor
  bool transpose_weights = false;  // of 8 bits: by every backward pass, no transposed copy is kept
  std::int64_t start_layers_bf16 = 0;  // of fewer bits: the model's first layers left in bf16
  std::int64_t end_layers_bf16 = 0;    // ... and its last
  Zero zero = Zero::none;
  std::int64_t data_shard = 0;  // ranks of `data` that hold a share each, copied along the others
                                // (HSDP); 0: all
  bool reshard = true;          // of ZeRO-3: weights are freed after forward and gathered again
  std::int64_t prefetch = 1;    // of ZeRO-3: units gathered ahead of the one that runs
  Offload offload = Offload::none;
  OffloadDevice offload_device = OffloadDevice::cpu;
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

/// Reads the JSON object. What is left out is derived or a default, as its row of
/// models/plan/fields_of_*.cpp says, most with a sentence of `assumptions`: `/plan/micro_batch: 1
/// taken as default`.
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

/// The most GPUs that a plan may use.
inline constexpr std::int64_t most_gpus = std::int64_t{1} << 20;

}  // namespace orrery::models
