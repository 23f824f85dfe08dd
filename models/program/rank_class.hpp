#pragma once
// What the ranks of one class do and hold, and what they do with other ranks.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/dtype.hpp"
#include "models/program/ids.hpp"
#include "models/program/instruction.hpp"
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
  hardware::DType dtype = hardware::DType::fp32;
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
  bool factor = false;  // of a compressed bucket: one of two of low rank, as wide as that, summed
  /// Memory traffic after it on its lane: the owned piece is added to the shard of sums and the
  /// bucket cleared (ZeRO-2 and 3).
  Bytes sums{};
  /// Of an unshard: the rank's own piece, which comes from the host first.
  Bytes fetched{};
  /// Of an unshard: the one right before it in the list gathers the rest of what the same runs
  /// read, a layer's experts; a run that awaits this one reads both, and frees both.
  bool completes = false;
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
  std::uint16_t kept = 0, delayed = 0;  // where backward is split
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
  std::int64_t parameters = 0;              // trained elements of its stage, sharded or not
  Bytes frozen{};                           // what its other parameters take, sharded or not
  std::int64_t owned = 0;                   // of them, those that one rank updates: all, or a shard
};

}  // namespace orrery::models
