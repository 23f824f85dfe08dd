#pragma once
// The Program: what every rank does in one training step, once, for both clocks. The simulator
// prices it; the executor runs it. Ranks that behave alike are one class; equal layers are one
// block; buffers are bound where a schedule instruction uses a block.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/model/model.hpp"
#include "models/plan/plan.hpp"
#include "models/program/block.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

enum class MeshAxis : std::uint8_t { tensor, data, pipeline };

/// Ranks as coordinates. Tensor varies fastest, then data, then pipeline.
struct Mesh {
  std::int64_t tensor = 1, data = 1, pipeline = 1;

  std::int64_t ranks() const { return tensor * data * pipeline; }
  std::int64_t rank(std::int64_t t, std::int64_t d, std::int64_t p) const {
    return t + tensor * (d + data * p);
  }
  std::int64_t tensor_of(std::int64_t rank) const { return rank % tensor; }
  std::int64_t data_of(std::int64_t rank) const { return rank / tensor % data; }
  std::int64_t stage_of(std::int64_t rank) const { return rank / (tensor * data); }
};

/// A group of ranks named by the axes that it spans; members follow from a rank's coordinates.
struct Communicator {
  std::string name;  // "tp", "dp", "world", "tie", "pp_f"
  std::vector<MeshAxis> spans;
  std::vector<std::int64_t> stages;  // of the pipeline axis; empty: all of them
};

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
  gather,           // parameters over the data axis, behind the optimizer (ZeRO-1 and 2)
  compress,         // run a phase over a bucket beside forward and backward, whose input and
                    // output pass it by: compression of gradients, and what undoes it
  unshard,          // one unit's parameters over the data axis, for the runs ahead (ZeRO-3)
};
inline constexpr int opcode_count = 11;
std::string_view name(Opcode op);

/// Does it run a phase?
constexpr bool runs_phase(Opcode op) {
  return op == Opcode::forward || op == Opcode::backward || op == Opcode::optimizer ||
         op == Opcode::compress;
}
/// Is it its rank's part in a joint collective?
constexpr bool is_joint(Opcode op) {
  return !runs_phase(op) && op != Opcode::send && op != Opcode::receive;
}

inline constexpr std::uint32_t no_binding = 0xffffffff;

/// The places that an instruction binds buffers to. `in` is the gradient that arrived, `out` what
/// is to be sent; activations arrive in the saved buffer of their micro-batch. Gathered weights are
/// bound by the `unshard` that fills them and freed, as slot_weights, by the last phase that awaits
/// it.
enum Slot : std::uint8_t { slot_saved = 0, slot_in = 1, slot_out = 2, slot_weights = 3 };
inline constexpr Slot slot_filled = slot_saved;  // of an `unshard`

/// One schedule instruction. 28 bytes: a step of a trillion parameters has 200,000 of them.
struct Instruction {
  Opcode op = Opcode::forward;
  std::uint8_t frees = 0;    // bit per Slot: freed when the instruction has ended
  std::uint16_t chunk = 0;   // virtual-stage-major: stage of chunk c is c mod pipeline
  std::uint32_t target = 0;  // phase, channel or joint collective, by opcode
  std::uint32_t micro_batch = 0;
  std::uint32_t bindings[3] = {no_binding, no_binding, no_binding};  // index within buffer type
  /// Of a phase: the joint collective, earlier in the list, for whose end the compute queue waits:
  /// the gather of its weights, or the reduction that empties the bucket that it fills.
  std::uint32_t awaits = no_binding;
};
static_assert(sizeof(Instruction) == 28);

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

/// An ordered stream of transfers from one stage to another.
struct Channel {
  std::uint32_t from = 0, to = 0;  // rank classes
  bool forward = true;             // activations down, or gradients up
  Bytes bytes{};                   // of each transfer
};

/// Which ends of the model a bucket or a gather holds, beside layers.
enum End : std::uint8_t { end_embedding = 1, end_head = 2 };

/// A collective at schedule level: a bucket, the norm, a tie, a parameter gather.
struct JointCollective {
  std::string name;
  Collective kind = Collective::all_reduce;
  std::uint16_t communicator = 0;
  DType dtype = DType::fp32;
  Bytes bytes{};                       // nccl-tests size
  std::vector<std::uint32_t> classes;  // whose ranks take part, beyond the class's own replicas
  std::int64_t first_layer = -1, layers = 0;  // what a bucket or an unshard holds
  std::uint8_t ends = 0;                      // ... bit per End
  std::int64_t elements = 0;                  // ... parameters, without padding
  /// Of an unshard: what it fills, as an index into RankClass::types. Of a reduction under ZeRO-2
  /// and 3: which of the persistent buffers "bucket..." it empties.
  std::uint16_t buffer = 0;
  /// Memory traffic behind it on its queue: the owned piece is added to the shard of sums and the
  /// bucket cleared (ZeRO-2 and 3).
  Bytes sums{};
  bool host_waits = false;
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
};

/// Ranks that do the same in the same order: all tensor and data coordinates of one stage.
struct RankClass {
  std::int64_t stage = 0;
  std::vector<Instruction> instructions;
  std::vector<PersistentBuffer> persistent;
  std::vector<BufferType> types;
  std::vector<ChunkBuffers> chunk_buffers;  // by virtual stage
  std::int64_t parameters = 0;              // elements of its stage, sharded or not
  std::int64_t owned = 0;                   // of them, those that one rank updates: all, or a shard
};

struct Program {
  Model model;
  Plan plan;
  Mesh mesh;
  std::vector<Communicator> communicators;
  std::vector<Block> blocks;
  std::vector<Phase> phases;
  std::vector<Channel> channels;
  std::vector<JointCollective> collectives;
  std::vector<RankClass> classes;
};

/// One rank's list as text, one instruction per line, made for a person's diff.
std::string text_of_rank(const Program& program, std::int64_t rank);
/// The whole Program: mesh, communicators, blocks with operations, phases, classes.
std::string text_of(const Program& program);

/// Throws ContractError naming rank class and instruction if the Program cannot run: a wait cycle,
/// a k-th send that meets another k-th receive, a collective that some member lacks or meets in
/// another order, a buffer used before it is bound, freed twice or never.
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
