#pragma once
// How one rank executes a block: for every formal operand, the base and the offset of its memory
// once the block is bound to a layer and a micro-batch. Temporaries share the workspace, each from
// its first use to its last. Where the bases lie is decided by memory_plan.hpp and layout.hpp.

#include <cstdint>
#include <vector>

#include "executor/device/device.hpp"
#include "models/program/program.hpp"

namespace orrery::executor {

/// What an operand's offset is counted from.
enum class Base : std::uint8_t {
  parameter,  // of the bound layer
  frozen,     // frozen parameters of the bound layer
  gradient,
  saved,    // of the bound layer and micro-batch
  kept,     // the part of it that weight gradients read, where backward is split
  delayed,  // what such a backward makes for them
  input,    // the previous block's output
  output,   // the next block's input
  on_host,  // in host memory: offloaded by the bound layer and micro-batch
  workspace,
  tokens,  // of the micro-batch
  labels,
  source,   // tokens that an encoder reads
  carried,  // what blocks of the micro-batch pass on by name
};
inline constexpr int base_count = 14;

constexpr std::int64_t aligned(std::int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/// Addresses of one block's operands, relative to their bases.
struct BlockPlan {
  struct Source {
    Base base = Base::workspace;
    std::int64_t offset = 0;  // bytes; unused for parameters and gradients (see Layout)
  };
  std::vector<View> views;  // by operand, with null data
  std::vector<Source> sources;
  std::vector<models::Operation> operations;  // those of `executed`
  std::int64_t workspace = 0;                 // bytes
  std::int64_t scratch = 0;                   // offset in it where collectives pack what they move
  std::int64_t saved = 0;                     // bytes that forward leaves for backward
  std::int64_t kept = 0, delayed = 0;         // bytes left for weight gradients by each
  std::int64_t on_host = 0;                   // bytes offloaded from forward to backward
  std::int64_t arrival = -1;  // offset of the input in `saved`; -1: backward does not read it
  /// Of a backward block: offset of its input in `delayed`; -1: no weight gradient reads it.
  std::int64_t delayed_arrival = -1;
};

/// Consecutive operations that process their rows piece by piece, with the collectives between
/// them. A collective runs once per piece if a later operation of the piece reads its result, and
/// otherwise once, after all pieces.
struct PieceRegion {
  std::size_t first = 0, end = 0;

  /// Is operation `i` an all-gather whose result a later operation of the same piece reads?
  static bool gathers(const std::vector<models::Operation>& operations, std::size_t i);
};
/// The region of operation `i`; empty where it is in none.
PieceRegion piece_region(const std::vector<models::Operation>& operations, std::size_t i);

/// A block with its GEMMs adapted to weights that are stored transposed (the vocabulary head's is
/// [vocab, hidden], like the table that it may be tied to): they read such a weight transposed and
/// compute its gradient transposed. Everything else is unchanged.
models::Block executed(const models::Block& block);

/// Plans of a forward block, its backward block and, where that is split, the weight gradients.
struct BlockPlans {
  BlockPlan forward, backward, weight_gradient;
};
/// `carried`: what the Program's blocks pass on by name, which lies one after the other.
BlockPlans plan_blocks(const models::Block& forward, const models::Block& backward,
                       const models::Block* weight_gradient = nullptr,
                       const std::vector<const models::Operand*>& carried = {});
/// Bytes of all that is carried.
std::int64_t carried_bytes(const std::vector<const models::Operand*>& carried);

}  // namespace orrery::executor
