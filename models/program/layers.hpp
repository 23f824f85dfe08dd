#pragma once
// How a Program divides the model: kinds of layers, units of parameters, chunks of pipeline stages;
// and the number formats and sharding of its state. What a layer computes is in its blocks
// (block.hpp).

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hardware/dtype.hpp"
#include "models/program/mesh.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

/// The part of the model that a kind of layer is. The embedding reads tokens and writes
/// activations, a layer reads and writes activations, the head reads activations and labels and
/// writes the loss.
enum class ModelPart : std::uint8_t { embedding, layer, head };

/// Layers that run the same blocks and differ only in their weights. Embedding and head are kinds,
/// too.
struct LayerKind {
  std::string name;  // "layer"
  ModelPart part = ModelPart::layer;
  std::uint32_t forward = 0, backward = 0;  // indices of blocks
  /// The block of weight gradients, where backward is split.
  std::optional<std::uint32_t> weight_gradient = std::nullopt;
  /// Variants of these blocks for passes whose all-to-alls overlap with no pass of another
  /// micro-batch (models/lowering/unpaired_passes.cpp).
  std::optional<std::uint32_t> forward_unpaired = std::nullopt, backward_unpaired = std::nullopt;
  /// The kind of the same layers that recomputes, for micro-batches of which all layers do.
  std::optional<std::uint32_t> recomputing = std::nullopt;
  /// Trained parameters (elements) that one rank holds of one such layer. A tied head on the
  /// embedding's stage does not count the shared table, which is the embedding's.
  std::int64_t parameters = 0;
  /// Of these, parameters of experts, where experts have other replicas than dense layers; else 0.
  std::int64_t expert_parameters = 0;
  Bytes frozen{};                     // frozen parameters, which have neither gradient nor state
  bool recomputes = false;            // backward recomputes what the plan's `recompute` says
  bool recomputes_elsewhere = false;  // backward recomputes only the plan's `recompute_elsewhere`
  bool offloads = false;              // saved activations are in host memory until backward
};

/// What a block does: a pass through the model, or work on the step as a whole.
enum class Direction : std::uint8_t { forward, backward, weight_gradient, step };

/// The kind of layer that a block runs, and in which direction; a block of the step has no kind.
struct BlockUse {
  const LayerKind* kind = nullptr;
  Direction direction = Direction::step;

  bool of(ModelPart part) const { return kind != nullptr && kind->part == part; }
};

/// Parameters that are reduced, gathered, sharded and checkpointed together: a layer, the embedding
/// or the head. Embedding and head are one unit where their shared table is gathered once for both.
/// Experts that have other replicas than the rest of their layer are separate units, after all
/// others.
struct Unit {
  std::string name;                  // "layer 3", "embedding", "experts of layer 3"
  std::vector<std::uint32_t> kinds;  // kinds of layers whose parameters it holds
  std::int64_t layer = -1;           // index in the model; -1: embedding or head
  std::int64_t elements = 0;         // trained parameters on one rank, before state sharding
  Bytes frozen{};                    // frozen parameters on one rank, before state sharding
  AxisSet replicated = {};           // axes over which its gradients are reduced
  AxisSet sharded = {};              // of these, axes over which its state is sharded
  MeshView view = MeshView::dense;   // which parameters of its kinds: the dense ones or experts'
};

/// Consecutive layers on one pipeline stage. A slot of the schedule computes one chunk.
struct Chunk {
  std::int64_t stage = 0;
  std::uint32_t place = 0;                  // index among its stage's chunks, in model order
  std::uint32_t copy = 0;                   // of the model, where the pipeline holds several
  std::uint32_t forward = 0, backward = 0;  // indices of phases
  std::optional<std::uint32_t> weight_gradient = std::nullopt;  // phase, where backward is split
  std::int64_t first_layer = 0, layers = 0;
  bool has_embedding = false, has_head = false;  // holds the embedding, the head
};

/// Consecutive layers of the model.
struct LayerRange {
  std::int64_t first = 0, count = 0;

  bool has(std::int64_t layer) const { return layer >= first && layer < first + count; }
};

/// How a sequence is cut over the n ranks of the `context` axis: one contiguous piece each, or 2n
/// pieces of which rank i holds pieces i and 2n-1-i ("zigzag": causal attention is balanced).
enum class SequenceCut : std::uint8_t { contiguous, early_and_late };

/// What one step of one replica computes.
struct StepShape {
  std::int64_t micro_batches = 1;
  std::int64_t sequences = 1;  // of a micro-batch
  std::int64_t seq_len = 1;
  std::int64_t source_len = 0;  // of the sequence that an encoder reads; 0: there is none
  SequenceCut cut = SequenceCut::contiguous;
  /// Lengths of the documents that every sequence holds one after another; empty: one document.
  std::vector<std::int64_t> documents = {};

  std::int64_t tokens() const { return sequences * seq_len; }  // of a micro-batch
};

/// Number formats.
struct Formats {
  hardware::DType compute = hardware::DType::bf16;
  hardware::DType storage = hardware::DType::bf16;   // activations and working weights
  hardware::DType gradient = hardware::DType::fp32;  // gradient accumulators and their reduction
  hardware::DType state = hardware::DType::fp32;     // the update's arithmetic, norm and loss
  hardware::DType master = hardware::DType::fp32;  // master weights: the state's, or the storage's
};

/// Which state is sharded over the ranks along `over` instead of replicated.
/// Source  Rajbhandari et al. 2020, "ZeRO", arXiv 1910.02054: its stages 1, 2 and 3 are the first,
///         the first two and all three
struct StateSharding {
  bool optimizer = false, gradients = false, parameters = false;
  bool whole_matrices = false;  // of the optimizer's state: gradients are reduced to every rank
  AxisSet over = MeshAxis::data;
  bool ahead = false;  // parameters are prefetched: gathered before use, next to compute
  bool optimizer_on_host = false, parameters_on_host = false;
  double host_share = 1;  // of the optimizer's elements, where the host has it
  bool in_files = false;  // offloaded state is in files on the node's drives

  /// Those of a rank's elements whose optimizer state the host has, rounded up.
  std::int64_t on_host(std::int64_t elements) const {
    if (!optimizer_on_host) return 0;
    return static_cast<std::int64_t>(std::ceil(host_share * static_cast<double>(elements)));
  }
};

/// A head that uses the embedding's table. shared: one table on one stage; copied: one table on
/// the first and one on the last stage, which sum their gradients.
enum class TiedTable : std::uint8_t { none, shared, copied };

}  // namespace orrery::models
