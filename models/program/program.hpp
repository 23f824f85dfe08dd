#pragma once
// The Program: what every rank does in one training step, once, for both clocks. The simulator
// prices it; the executor runs it. Ranks that behave alike are one class; equal layers are one
// block; buffers are bound where a schedule instruction uses a block. When the lowering ends it is
// finished: what it means is stated here, and no consumer asks the plan or the model.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/program/block.hpp"
#include "models/program/layers.hpp"
#include "models/program/mesh.hpp"
#include "models/program/rank_class.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

struct Program {
  Mesh mesh;
  std::vector<Communicator> communicators;
  std::vector<Block> blocks;
  std::vector<Phase> phases;
  std::vector<Channel> channels;
  std::vector<JointCollective> collectives;
  std::vector<RankClass> classes;

  // What lowering decided and consumers must know.
  std::vector<LayerKind> kinds;
  std::vector<std::uint32_t> kind_of_layer;  // of the model's layers, in order
  std::vector<Chunk> chunks;                 // in model order
  std::vector<Unit> units;                   // in model order; a shared table's first
  std::uint32_t copies = 1;                  // of the model in a pipeline; each runs its share of
                                             // the micro-batches, in order
  StepShape step;
  Formats formats;
  StateSharding sharding;
  TiedTable tied = TiedTable::none;
  Bytes boundary{};             // what a layer hands to the next, of one micro-batch on one rank
  std::int64_t vocabulary = 0;  // tokens are below it
  bool graphs = false;          // kernels of the model's blocks are launched as CUDA graphs
  bool hides_tensor = true;     // collectives of tensor groups, next to products, where a stack can
  /// What its blocks price without stating it exactly, so that an executor refuses them: "dropout".
  std::string approximated;

  /// Index of the communicator with this role. Errors  there is none: ContractError
  std::uint16_t communicator(CommunicatorRole role) const;
  CommunicatorRole role_of(std::uint16_t communicator) const {
    return communicators[communicator].role;
  }
  BlockUse use_of(std::uint32_t block) const;
  /// Is a micro-batch of the share of the chunk's copy of the model?
  bool runs(const Chunk& chunk, std::int64_t micro_batch) const {
    return micro_batch * copies / step.micro_batches == chunk.copy;
  }
  /// Where backward is split: do the weight gradients of a kind, or of the layer at which a chunk's
  /// backward begins, read the gradient that arrives there?
  bool delays_arrival(const LayerKind& kind) const;
  bool delays_arrival(const Chunk& chunk) const;
  /// What a bucket or a gather holds.
  std::span<const Unit> units_of(const JointCollective& joint) const {
    return std::span{units}.subspan(joint.first_unit, joint.units);
  }
  LayerRange layers_of(const JointCollective& joint) const;
  /// Does it hold the embedding, the head, any layer?
  bool holds(const JointCollective& joint, ModelPart part) const;
  /// The kind that stands there; the first of several.
  const LayerKind& kind(ModelPart part) const;
  /// Ranks over which state is sharded.
  std::int64_t shards() const { return mesh.degree(sharding.over); }
};

/// One rank's list as text, one instruction per line, made for a person's diff.
std::string text_of_rank(const Program& program, std::int64_t rank);
/// The whole Program: mesh, communicators, blocks with operations, phases, classes.
std::string text_of(const Program& program);

/// Throws ContractError naming rank class and instruction if the Program cannot run: a deadlock, a
/// token awaited before it is made, a k-th send that meets another k-th receive, a collective that
/// some member lacks or meets in another order, a buffer used before it is bound, freed twice or
/// never.
void check(const Program& program);

/// FLOPs and bytes of one rank of a class over the whole step, by counting every instruction.
struct Ledger {
  Flops flops{};
  Bytes kernel_bytes{};      // memory traffic of kernels
  Bytes collective_bytes{};  // payload of collectives
  Bytes transfer_bytes{};    // sent to other stages
  friend bool operator==(const Ledger&, const Ledger&) = default;
};
/// An oracle of tests: what evaluations, traces and laws have to add up to.
Ledger ledger_of(const Program& program, std::uint32_t rank_class);

}  // namespace orrery::models
