#pragma once
// Plans where the buffers of one rank lie in its arena, before the first step: the Program says
// when each is bound and freed, and the order is the same in every step. The workspace of the
// running phase comes first, then bound buffers, each in the lowest free gap. Memory that is held
// for the whole run is not in the arena (run/held_memory.hpp).

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "executor/layout/block_plan.hpp"
#include "models/program/program.hpp"

namespace orrery::executor {

/// How one chunk's layers share its saved buffer and, where backward is split, the buffers for its
/// weight gradients, in the order of forward.
struct ChunkPlan {
  /// A layer, the embedding or the head (-1).
  struct LayerRoom {
    std::uint32_t forward = 0;  // block
    std::int64_t layer = -1;
    std::int64_t saved = 0;              // offset in the saved buffer
    std::int64_t kept = 0, delayed = 0;  // offsets in the kept and delayed buffers
    std::int64_t on_host = 0;            // offset in the host memory of a micro-batch
  };
  std::vector<LayerRoom> layers;
  std::int64_t bytes = 0, kept = 0, delayed = 0, on_host = 0;
  std::int64_t arrival = 0;  // offset of the chunk's input in the saved buffer
  std::int64_t carried = 0;  // ... of what its blocks pass on by name

  std::size_t place_of(const models::LayerKind& kind, std::int64_t layer) const;
};

/// Arena offsets of an instruction's buffers; -1: not bound. `saved` of an unshard is the buffer
/// that it fills. `on_host` is an offset in the host memory for offloaded activations.
struct Bound {
  std::int64_t saved = -1, in = -1, out = -1, kept = -1, delayed = -1, on_host = -1;
};

/// The arena of one rank class.
class MemoryPlan {
 public:
  /// The workspace has `least` bytes or more. A sent buffer keeps its memory until `depth` further
  /// sends of its channel (run/send_depth.hpp).
  MemoryPlan(const models::Program& program, std::int64_t stage, std::int64_t least,
             std::size_t depth);

  const std::vector<BlockPlan>& blocks() const { return blocks_; }
  const ChunkPlan& chunk(std::uint32_t chunk) const {
    return chunks_[program_.chunks[chunk].place];
  }
  const Bound& bound(std::size_t instruction) const { return bound_[instruction]; }
  /// Offset in the chunk's delayed buffer of the gradient that arrives at a layer in backward; -1:
  /// no weight gradient reads it, so it is in a buffer that is freed after backward.
  std::int64_t delayed_arrival(const ChunkPlan& chunk, std::size_t place) const;
  std::int64_t arena() const { return arena_; }
  /// Bytes that are offloaded to the host for all micro-batches at once.
  std::int64_t on_host() const { return on_host_; }
  /// Offsets in the workspace: two edge buffers for what layers pass to each other, then the
  /// running block's temporaries.
  std::int64_t edge(int which) const { return which * edge_; }
  std::int64_t temporaries() const { return 2 * edge_; }

  /// `instruction` binds memory that `send` reads, so it must wait for the end of that send.
  struct Reuse {
    std::uint32_t instruction = 0, send = 0;
  };
  const std::vector<Reuse>& reuses() const { return reuses_; }

  /// An instruction binds a buffer (`bytes` > 0) or frees one (`bytes` < 0).
  struct Change {
    std::uint32_t instruction = 0;
    bool at_end = false;
    models::BufferKind kind = models::BufferKind::activation;
    std::int64_t bytes = 0, offset = 0;  // in the arena
  };
  const std::vector<Change>& changes() const { return changes_; }

 private:
  struct Live {
    std::uint32_t type, index;  // of the Program's buffer; once sent: `sent`, the instruction
    std::int64_t offset, bytes;
    models::BufferKind kind;
  };
  static constexpr std::uint32_t sent = 0xffffffff;
  /// Free memory that a send may still read.
  struct Leaving {
    std::uint32_t send;
    std::int64_t offset, bytes;
  };

  void plan_chunk(const models::Chunk& chunk);
  void plan_workspace(std::int64_t least);
  std::int64_t workspace_of(const models::Instruction& each) const;
  unsigned held_slots(const models::Instruction& each) const;
  void walk();
  void step(std::uint32_t i);
  void release(std::uint32_t i, models::Slot slot);
  std::int64_t bind(std::uint32_t i, std::uint16_t type, std::uint32_t index);
  void free(std::uint32_t i, std::uint32_t type, std::uint32_t index);
  void keep_sent(std::uint32_t i, std::uint16_t type, std::uint32_t index);
  void release_send(std::uint32_t i, std::uint32_t send);
  std::vector<Live>::iterator find(std::uint32_t type, std::uint32_t index);
  std::int64_t lowest_gap(std::int64_t bytes) const;
  std::int64_t size_of(std::uint16_t type) const;

  const models::Program& program_;
  const models::RankClass& ranks_;
  std::vector<BlockPlan> blocks_;
  std::vector<ChunkPlan> chunks_;
  std::vector<Bound> bound_;
  std::vector<Reuse> reuses_;
  std::vector<Change> changes_;
  std::vector<Live> live_;  // by offset
  std::vector<Leaving> leaving_;
  std::size_t depth_;
  std::map<std::uint32_t, std::deque<std::uint32_t>> pending_sends_;  // sends, by channel
  std::int64_t edge_ = 0, workspace_ = 0, arena_ = 0, on_host_ = 0;
};

}  // namespace orrery::executor
