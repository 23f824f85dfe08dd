#pragma once
// What the ranks of one class do and hold: their instruction list and buffers, and the channels and
// collectives by which they communicate with other ranks.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/dtype.hpp"
#include "models/program/ids.hpp"
#include "models/program/instruction.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

/// What a buffer is for: the categories of the memory report.
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

/// An ordered stream of transfers from one stage to another.
struct Channel {
  std::uint32_t from = 0, to = 0;  // rank classes
  bool forward = true;             // activations to the next chunk, or gradients to the previous
  Bytes bytes{};                   // of each transfer
  std::uint16_t communicator = 0;  // of which sender and receiver are neighbours
};

/// A collective that is an instruction of its own, not an operation of a block: a gradient bucket,
/// the gradient norm, the sum of a tied gradient, a gather of parameters.
struct JointCollective {
  std::string name;
  Collective kind = Collective::all_reduce;
  std::uint16_t communicator = 0;
  hardware::DType dtype = hardware::DType::fp32;
  Bytes bytes{};                            // nccl-tests size
  std::vector<std::uint32_t> classes;       // rank classes that take part
  std::uint32_t first_unit = 0, units = 0;  // units in a bucket or an unshard: a range of the
                                            // Program's
  std::int64_t elements = 0;                // their parameters, without padding
  /// Of an unshard: the type of buffer that it fills, as an index into RankClass::types. Of a
  /// reduction of sharded gradients: which of the class's buckets it empties.
  std::uint16_t buffer = 0;
  /// Of a compressed bucket: which output of the compressing phase is sent, and which input of the
  /// decompressing phase is received.
  std::uint8_t part = 0;
  bool low_rank_factor = false;  // of a PowerSGD bucket: sums one of its two low-rank factors
  /// Memory traffic after the collective, on its lane: the owned piece is added to the rank's shard
  /// of accumulated gradients and the bucket is cleared (ZeRO-2 and 3).
  Bytes accumulate_traffic{};
  /// Of an unshard of offloaded parameters: the rank's own shard, copied from the host first.
  Bytes from_host{};
  /// Of an unshard: the unshard right before it in the list gathers the layer's experts. A phase
  /// that awaits this one reads the weights of both, and frees both.
  bool completes = false;
  bool gathers_parameters = false;
  bool host_waits = false;           // the host waits until it has ended
  bool hidden_in_next_step = false;  // its hidden part runs in the next step's forward
};

/// A type of buffer of which a class holds several at once: saved activations of a chunk, ...
struct BufferType {
  std::string name;  // "saved.c3"
  BufferKind kind = BufferKind::activation;
  Bytes bytes{};
};

/// Buffer types of a chunk, as indices into RankClass::types.
struct ChunkBuffers {
  std::uint16_t saved = 0, out = 0, gradient_in = 0, gradient_out = 0;
  std::uint16_t kept = 0, delayed = 0;  // only where backward is split
};

/// A buffer held for the whole step.
struct PersistentBuffer {
  std::string name;
  BufferKind kind = BufferKind::parameter;
  Bytes bytes{};
  bool bucket = false;  // a gradient bucket, filled by backward and emptied by reductions; buckets
                        // are numbered in the order of RankClass::persistent
};

/// Ranks that execute the same instruction list: all ranks of one pipeline stage.
struct RankClass {
  std::int64_t stage = 0;
  std::vector<Instruction> instructions;
  std::vector<PersistentBuffer> persistent;
  std::vector<BufferType> types;
  std::vector<std::uint32_t> chunks;        // in model order
  std::vector<ChunkBuffers> chunk_buffers;  // of each
  /// Where micro-batches differ in what they recompute: the buffers of those that recompute all
  /// layers, of each chunk, and which they are, by chunk of the class and micro-batch. Else empty.
  std::vector<ChunkBuffers> recomputing_buffers;
  std::vector<bool> recomputes;
  // Of its stage on one rank, before state sharding: trained parameters, and bytes of frozen ones.
  std::int64_t parameters = 0;
  Bytes frozen{};
  std::int64_t owned = 0;     // trained parameters that one rank updates: all, or a shard
  std::int64_t matrices = 0;  // of these, parameters of matrices under Muon
};

}  // namespace orrery::models
