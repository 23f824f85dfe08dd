#pragma once
// What of the model a Program runs and where: kinds of layers, units of state, chunks of stages;
// and what numbers and state are kept in.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hardware/dtype.hpp"
#include "models/program/mesh.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

/// Where in the model a kind of layer stands, and so what it reads and leaves: tokens and
/// activations; activations both; activations and the loss.
enum class ModelPart : std::uint8_t { embedding, layer, head };

/// Layers that run the same blocks, which differ in their weights alone. Embedding and head are
/// kinds, too.
struct LayerKind {
  std::string name;  // "layer"
  ModelPart part = ModelPart::layer;
  std::uint32_t forward = 0, backward = 0;  // blocks
  /// Where backward leaves it to a block of its own.
  std::optional<std::uint32_t> weight_gradient = std::nullopt;
  /// The same blocks where no other direction is computed next to their all-to-alls.
  std::optional<std::uint32_t> forward_alone = std::nullopt, backward_alone = std::nullopt;
  /// Elements that a rank holds for one run; without the table of a tied head on the embedding's
  /// stage, which is the embedding's. Trained ones alone.
  std::int64_t parameters = 0;
  /// Of them, those of experts, where the replicas of experts are not the dense layers'.
  std::int64_t expert_parameters = 0;
  Bytes frozen{};                // what the others take, which have neither gradient nor state
  bool recomputes = false;       // backward repeats what the plan's recomputation says
  bool recomputes_less = false;  // or what it says of the layers that it leaves out
  bool offloads = false;         // the host keeps what forward saved until backward
};

/// What a block does: for the model, or for the step as a whole.
enum class Direction : std::uint8_t { forward, backward, weight_gradient, step };

/// Of a block: which kind it runs, and in which direction; a block of the step is of no kind.
struct BlockUse {
  const LayerKind* kind = nullptr;
  Direction direction = Direction::step;

  bool of(ModelPart part) const { return kind != nullptr && kind->part == part; }
};

/// What is reduced, gathered, sharded and checkpointed together: a layer, the embedding, the head;
/// embedding and head as one where their shared table is gathered once for both; the experts of a
/// layer, where other ranks are their replicas, which come after all others.
struct Unit {
  std::string name;                  // "layer 3", "embedding", "experts of layer 3"
  std::vector<std::uint32_t> kinds;  // whose parameters it holds
  std::int64_t layer = -1;           // of the model; -1: embedding or head
  std::int64_t elements = 0;         // trained ones on one rank, where nothing is sharded
  Bytes frozen{};                    // what the others take there
  AxisSet replicated = {};           // axes over whose ranks its gradients are summed
  AxisSet sharded = {};              // of them, those whose ranks hold a share of its state each
  MeshView view = MeshView::dense;   // the part of its kinds' parameters that it holds
};

/// A run of consecutive layers on one stage: what a slot of the schedule computes.
struct Chunk {
  std::int64_t stage = 0;
  std::uint32_t place = 0;                  // among its stage's chunks, in model order
  std::uint32_t copy = 0;                   // of the model, where the pipeline holds several
  std::uint32_t forward = 0, backward = 0;  // phases
  std::optional<std::uint32_t> weight_gradient = std::nullopt;  // where backward is split
  std::int64_t first_layer = 0, layers = 0;
  bool embeds = false, predicts = false;  // holds the embedding, the head
};

/// Consecutive layers of the model.
struct LayerRange {
  std::int64_t first = 0, count = 0;

  bool has(std::int64_t layer) const { return layer >= first && layer < first + count; }
};

/// How context ranks along the axis `context` cut a sequence: one piece each, or the i-th of n
/// ranks the pieces i and 2n-1-i of 2n.
enum class SequenceCut : std::uint8_t { contiguous, early_and_late };

/// What one step of one replica computes.
struct StepShape {
  std::int64_t micro_batches = 1;
  std::int64_t sequences = 1;  // of a micro-batch
  std::int64_t seq_len = 1;
  SequenceCut cut = SequenceCut::contiguous;
  /// Lengths of the documents that every sequence holds one after another; empty: one document.
  std::vector<std::int64_t> documents = {};

  std::int64_t tokens() const { return sequences * seq_len; }  // of a micro-batch
};

/// What numbers are kept in.
struct Formats {
  hardware::DType compute = hardware::DType::bf16;
  hardware::DType storage = hardware::DType::bf16;   // activations and working weights
  hardware::DType gradient = hardware::DType::fp32;  // sums of gradients
  hardware::DType state = hardware::DType::fp32;     // master weights, moments, the loss
};

/// What the ranks along `over` hold a share of each, instead of a copy.
/// Source  Rajbhandari et al. 2020, "ZeRO", arXiv 1910.02054: its stages 1, 2 and 3 are the first,
///         the first two and all three
struct StateSharding {
  bool optimizer = false, gradients = false, parameters = false;
  AxisSet over = MeshAxis::data;
  bool ahead = false;  // of parameters: gathered next to compute
  bool optimizer_on_host = false, parameters_on_host = false;
  bool in_files = false;  // what the host has of either lies on its node's drives
};

/// Where the head's table is the embedding's: one of one stage, or a copy of it on the first stage
/// and on the last, whose gradients they sum.
enum class TiedTable : std::uint8_t { none, shared, copied };

}  // namespace orrery::models
