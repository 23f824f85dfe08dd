#pragma once
// The Program: what every rank does in one training step, once, for both clocks. The simulator
// prices it; the executor runs it. Ranks that behave alike are one class; equal layers are one
// block; buffers are bound where a schedule instruction uses a block.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/program/block.hpp"
#include "models/program/mesh.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

/// Where bytes live, for the memory report.
enum class BufferKind : std::uint8_t {
  parameter,
  gradient,
  optimizer,
  activation,
  staging,
  workspace
};
inline constexpr int buffer_kind_count = 6;
std::string_view name(BufferKind kind);

enum class Opcode : std::uint8_t {
  forward,          // run a phase; its first and last blocks draw tokens and labels
  backward,         // run a phase (recomputation and accumulation are operations in it)
  send,             // to the peer of a channel, in channel order
  receive,          // from the peer of a channel, in channel order
  reduce_gradient,  // a bucket over the data axis
  tie,              // sum what several ranks hold of one gradient: tied embedding, replicated norms
  norm,             // gradient norm: a barrier on which the host waits
  optimizer,        // run a phase over the owned shard
  gather,           // parameters over the data axis, after the optimizer (ZeRO-1 and 2)
  compress,         // run a phase over one gradient bucket: compression, or decompression; consumes
                    // no activation and produces none
  unshard,          // one unit's parameters over the data axis, for the runs ahead (ZeRO-3)
};
inline constexpr int opcode_count = 11;
std::string_view name(Opcode op);

inline constexpr std::uint32_t no_binding = 0xffffffff;

/// The places that an instruction binds buffers to. `in` is the gradient that arrived, `out` what
/// is to be sent; activations arrive in the saved buffer of their micro-batch. Gathered weights are
/// bound by the `unshard` that fills them and freed, as slot_weights, by the last phase that awaits
/// it.
enum Slot : std::uint8_t { slot_saved = 0, slot_in = 1, slot_out = 2, slot_weights = 3 };
inline constexpr Slot slot_filled = slot_saved;  // of an `unshard`
inline constexpr int slot_count = 4;
constexpr std::uint8_t bit(Slot slot) {
  return static_cast<std::uint8_t>(1U << slot);
}

/// What an instruction makes, named by the instruction's index in its list: a receive or a joint
/// collective makes its own end; a phase makes its output, and the end of its kernels; a send makes
/// nothing that a later instruction waits for.
using Token = std::uint32_t;
inline constexpr Token no_token = 0xffffffff;

/// One schedule instruction. 32 bytes: a step of a trillion parameters has 200,000 of them.
struct Instruction {
  Opcode op = Opcode::forward;
  std::uint8_t binds : 4 = 0;  // bit per Slot: held from the beginning of the instruction
  std::uint8_t frees : 4 = 0;  // bit per Slot: freed when the instruction has ended
  std::uint16_t chunk = 0;     // in model order
  std::uint32_t target = 0;    // phase, channel or joint collective, by opcode
  std::uint32_t micro_batch = 0;
  std::uint32_t bindings[3] = {no_binding, no_binding, no_binding};  // index within buffer type
  /// What it consumes. A phase: what its first block reads, a receive or a joint collective;
  /// without one it is ready from the beginning. A send: the phase whose output it sends. A joint
  /// collective: the phase after whose kernels it may begin.
  Token input = no_token;
  /// Of a phase: the joint collective for whose end the compute queue waits: the gather of its
  /// weights, or the reduction that empties the bucket that it fills.
  Token awaits = no_token;
};
static_assert(sizeof(Instruction) == 32);

/// A block bound to `count` consecutive layers (ascending in forward, descending in backward).
struct Invocation {
  std::uint32_t block = 0;
  std::int64_t first_layer = 0;  // in model order; -1 for blocks that belong to no layer
  std::int64_t count = 1;
};

/// What FWD, BWD or OPT runs: blocks in order, bound to layers.
struct Phase {
  std::string name;
  std::vector<Invocation> invocations;
};

/// Where in the model a kind of layer stands, and so what it reads and leaves: tokens and
/// activations; activations both; activations and the loss.
enum class ModelPart : std::uint8_t { embedding, layer, head };

/// Layers that run the same blocks, which differ in their weights alone. Embedding and head are
/// kinds, too.
struct LayerKind {
  std::string name;  // "layer"
  ModelPart part = ModelPart::layer;
  std::uint32_t forward = 0, backward = 0;  // blocks
  std::optional<std::uint32_t> weight_gradient =
      std::nullopt;  // where backward leaves it to a block of its own
  /// Elements that a rank holds for one run; without the table of a tied head on the embedding's
  /// stage, which is the embedding's.
  std::int64_t parameters = 0;
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
/// embedding and head as one where their shared table is gathered once for both.
struct Unit {
  std::string name;                  // "layer 3", "embedding"
  std::vector<std::uint32_t> kinds;  // whose parameters it holds
  std::int64_t layer = -1;           // of the model; -1: embedding or head
  std::int64_t elements = 0;         // on one rank, where nothing is sharded
  AxisSet replicated = {};           // axes over whose ranks its gradients are summed
  AxisSet sharded = {};              // of them, those whose ranks hold a share of its state each
};

/// A run of consecutive layers on one stage: what a slot of the schedule computes.
struct Chunk {
  std::int64_t stage = 0;
  std::uint32_t place = 0;                  // among its stage's chunks, in model order
  std::uint32_t forward = 0, backward = 0;  // phases
  std::int64_t first_layer = 0, layers = 0;
  bool embeds = false, predicts = false;  // holds the embedding, the head
};

/// Consecutive layers of the model.
struct LayerRange {
  std::int64_t first = 0, count = 0;

  bool has(std::int64_t layer) const { return layer >= first && layer < first + count; }
};

/// What one step of one replica computes.
struct StepShape {
  std::int64_t micro_batches = 1;
  std::int64_t sequences = 1;  // of a micro-batch
  std::int64_t seq_len = 1;

  std::int64_t tokens() const { return sequences * seq_len; }  // of a micro-batch
};

/// What numbers are kept in.
struct Formats {
  DType compute = DType::bf16;
  DType storage = DType::bf16;   // activations and working weights
  DType gradient = DType::fp32;  // sums of gradients
  DType state = DType::fp32;     // master weights, moments, the loss
};

/// What the ranks along `over` hold a share of each, instead of a copy.
/// Source  Rajbhandari et al. 2020, "ZeRO", arXiv 1910.02054: its stages 1, 2 and 3 are the first,
///         the first two and all three
struct StateSharding {
  bool optimizer = false, gradients = false, parameters = false;
  AxisSet over = MeshAxis::data;
};

/// Where the head's table is the embedding's: one of one stage, or a copy of it on the first stage
/// and on the last, whose gradients they sum.
enum class TiedTable : std::uint8_t { none, shared, copied };

/// An ordered stream of transfers from one stage to another.
struct Channel {
  std::uint32_t from = 0, to = 0;  // rank classes
  bool forward = true;             // activations down, or gradients up
  Bytes bytes{};                   // of each transfer
  std::uint16_t communicator = 0;  // whose neighbours the two ends are
};

/// A collective at schedule level: a bucket, the norm, a tie, a parameter gather.
struct JointCollective {
  std::string name;
  Collective kind = Collective::all_reduce;
  std::uint16_t communicator = 0;
  DType dtype = DType::fp32;
  Bytes bytes{};                       // nccl-tests size
  std::vector<std::uint32_t> classes;  // whose ranks take part, beyond the class's own replicas
  std::uint32_t first_unit = 0, units = 0;  // what a bucket or an unshard holds
  std::int64_t elements = 0;                // ... parameters, without padding
  /// Of an unshard: what it fills, as an index into RankClass::types. Of a reduction of sharded
  /// gradients: which of the class's buckets it empties.
  std::uint16_t buffer = 0;
  /// Of a compressed bucket: which output of the phase that compresses it is sent, and which input
  /// of the one that undoes it is received.
  std::uint8_t part = 0;
  /// Memory traffic after it on its lane: the owned piece is added to the shard of sums and the
  /// bucket cleared (ZeRO-2 and 3).
  Bytes sums{};
  bool host_waits = false;
  bool carries_over = false;  // what is hidden of it runs in the next step's forward
};

/// A kind of buffer that a class holds many of at once: saved activations of a chunk, ...
struct BufferType {
  std::string name;  // "saved.c3"
  BufferKind kind = BufferKind::activation;
  Bytes bytes{};
};

/// Buffer types of a chunk, as indices into RankClass::types.
struct ChunkBuffers {
  std::uint16_t saved = 0, out = 0, gradient_in = 0, gradient_out = 0;
};

/// A buffer held for the whole step.
struct PersistentBuffer {
  std::string name;
  BufferKind kind = BufferKind::parameter;
  Bytes bytes{};
  bool bucket = false;  // filled by backward and emptied by reductions, in the order of the list
};

/// Ranks that do the same in the same order: all tensor and data coordinates of one stage.
struct RankClass {
  std::int64_t stage = 0;
  std::vector<Instruction> instructions;
  std::vector<PersistentBuffer> persistent;
  std::vector<BufferType> types;
  std::vector<std::uint32_t> chunks;        // in model order
  std::vector<ChunkBuffers> chunk_buffers;  // of each
  std::int64_t parameters = 0;              // elements of its stage, sharded or not
  std::int64_t owned = 0;                   // of them, those that one rank updates: all, or a shard
};

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
  StepShape step;
  Formats formats;
  StateSharding sharding;
  TiedTable tied = TiedTable::none;
  Bytes boundary{};             // what a layer hands to the next, of one micro-batch on one rank
  std::int64_t vocabulary = 0;  // tokens are below it
  bool graphs = false;          // kernels of the model's blocks are launched as CUDA graphs
  /// What its blocks price without stating it exactly, so that an executor refuses them: "dropout".
  std::string approximated;

  /// Index of the communicator with this role. Errors  there is none: ContractError
  std::uint16_t communicator(CommunicatorRole role) const;
  CommunicatorRole role_of(std::uint16_t communicator) const {
    return communicators[communicator].role;
  }
  BlockUse use_of(std::uint32_t block) const;
  std::span<const Unit> units_of(const JointCollective& joint) const {
    return std::span{units}.subspan(joint.first_unit, joint.units);
  }
  LayerRange layers_of(const JointCollective& joint) const;
  /// Does it hold the embedding, or the head?
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
Ledger ledger_of(const Program& program, std::uint32_t rank_class);

}  // namespace orrery::models
