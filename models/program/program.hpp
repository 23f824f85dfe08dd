#pragma once
// The Program: what every rank does in one training step. The simulator prices it; the executor
// runs it. All ranks of a pipeline stage are one rank class with one list of instructions. An
// instruction runs a phase, sends or receives between stages, or takes part in a collective; a
// phase runs blocks of operations, each bound to consecutive layers that share it. Lowering
// (models/lowering/lower.hpp) makes the Program from a plan. All that its consumers need is stated
// here, so that none of them reads the plan or the model. Left out: how long anything takes, which
// depends on the cluster and the software (models/evaluation/priced.hpp).

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "models/program/block.hpp"
#include "models/program/layers.hpp"
#include "models/program/mesh.hpp"
#include "models/program/rank_class.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

/// Appends an element, and returns its index.
template <class Element>
std::uint32_t appended(std::vector<Element>& all, std::type_identity_t<Element> one) {
  all.push_back(std::move(one));
  return static_cast<std::uint32_t>(all.size() - 1);
}

/// Work of one rank in every step, or every so many steps, that no instruction waits for.
struct AheadWork {
  enum class Use : std::uint8_t { host, to_gpu, to_host, read, write };

  std::string name, queue;
  Use use = Use::host;
  Time host{};         // of the host, as stated
  Bytes bytes{};       // of all others
  Bandwidth shared{};  // rate of the storage that all ranks share; 0: the cluster's own
  double per_step = 1;
};

/// One training step of all ranks. Its parts refer to each other by index into these vectors.
struct Program {
  Mesh mesh;                                 // ranks as coordinates on the axes of parallelism
  std::vector<Communicator> communicators;   // groups of ranks that communicate
  std::vector<Block> blocks;                 // lists of operations, shared by equal layers
  std::vector<Phase> phases;                 // blocks bound to layers: what one instruction runs
  std::vector<Channel> channels;             // ordered transfers from one stage to another
  std::vector<JointCollective> collectives;  // those outside blocks: gradient buckets, the norm
  std::vector<RankClass> classes;            // one for each pipeline stage, in order

  // Facts of plan and model that consumers need.
  std::vector<LayerKind> kinds;
  std::vector<std::uint32_t> kind_of_layer;  // index into `kinds`, by layer of the model
  std::vector<Chunk> chunks;                 // in model order
  std::vector<Unit> units;                   // in model order, experts' units last; a unit of
                                             // embedding and head comes first
  std::uint32_t copies = 1;                  // of the model in one pipeline (DualPipe: 2); each
                                             // runs a contiguous share of the micro-batches
  StepShape step;
  Formats formats;
  StateSharding sharding;
  TiedTable tied = TiedTable::none;
  Bytes activation_bytes{};      // activation between two layers, of one micro-batch on one rank
  Bytes reference_bytes{};       // the same of a frozen reference model that runs next to it (DPO)
  std::int64_t vocabulary = 0;   // token ids are below it
  bool graphs = false;           // kernels of the model's blocks are launched as CUDA graphs
  std::string rank_order{};      // of the plan, "tp-cp-ep-pp-dp"; empty: as Mesh numbers ranks
  std::string attention{};       // kernel that the plan chooses; empty: the stack's own
  bool overlaps_data = true;     // data-parallel reductions overlap, if the stack can
  bool overlaps_gathers = true;  // gathers of parameters overlap, if the stack can
  /// The host waits for every transfer between stages, as the plan says; else as the stack does.
  std::optional<bool> awaits_transfers{};
  bool overlaps_tensor = true;  // tensor-parallel collectives overlap with GEMMs, if the stack can
  /// Work of the loader and of writers that nothing in the step waits for: each queue runs next to
  /// the step, which is no shorter than the longest of them.
  std::vector<AheadWork> ahead{};
  /// A feature that the blocks only approximate, such as "sparse attention": enough for a price,
  /// but an executor refuses the Program. Empty: none.
  std::string inexact_feature;

  /// Index of the communicator with this role.
  /// Errors  there is none: ContractError
  std::uint16_t communicator(CommunicatorRole role) const;
  CommunicatorRole role_of(std::uint16_t communicator) const {
    return communicators[communicator].role;
  }
  /// The kind of layer that a block runs, and its direction.
  BlockUse use_of(std::uint32_t block) const;
  /// Appends a block that belongs to no layer, and returns the index of a new phase that runs it.
  std::uint32_t add_phase(Block block);
  /// Does some layer have experts whose gradients are reduced over an axis of their own?
  bool reduces_experts() const;
  /// Does the chunk's copy of the model run this micro-batch?
  bool runs(const Chunk& chunk, std::int64_t micro_batch) const {
    return micro_batch * copies / step.micro_batches == chunk.copy;
  }
  /// Where backward is split: do the weight gradients of this kind, or of this chunk's last layer,
  /// read the gradient of its output? That gradient must then outlive backward.
  bool keeps_output_gradient(const LayerKind& kind) const;
  bool keeps_output_gradient(const Chunk& chunk) const;
  /// The units of a gradient bucket or a parameter gather.
  std::span<const Unit> units_of(const JointCollective& joint) const {
    return std::span{units}.subspan(joint.first_unit, joint.units);
  }
  /// The layers among them.
  LayerRange layers_of(const JointCollective& joint) const;
  /// Do they include parameters of this part of the model?
  bool holds(const JointCollective& joint, ModelPart part) const;
  /// Operands that blocks pass on besides inputs and outputs (Role::carried), each name once, in
  /// order of their first block. A chunk keeps them with what its layers save.
  std::vector<const Operand*> carried() const;
  /// The kind of layer at this part of the model; the first of several.
  const LayerKind& kind(ModelPart part) const;
  /// Number of ranks over which state is sharded.
  std::int64_t shards() const { return mesh.degree(sharding.over); }
  /// The part of each, rounded up.
  Bytes shard_of(Bytes whole) const { return Bytes{(whole.count() + shards() - 1) / shards()}; }
  /// The most ranks that share the state of any unit: experts may have more replicas than the rest.
  std::int64_t most_shards() const {
    return std::max(shards(), mesh.degree(MeshAxis::expert_data));
  }
};

/// One rank's list as text, one instruction per line, for reading and for `diff`.
std::string text_of_rank(const Program& program, std::int64_t rank);
/// The whole Program: mesh, communicators, blocks with operations, phases, classes.
std::string text_of(const Program& program);

/// Verifies that the Program can run.
/// Errors  a deadlock, a token awaited before it is made, a k-th send that does not match the k-th
///         receive of its channel, a collective that some member lacks or reaches in another order,
///         a buffer used before it is bound, freed twice or never: ContractError that names rank
///         class and instruction
void check(const Program& program);

}  // namespace orrery::models
