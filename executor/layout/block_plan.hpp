#pragma once
// A block as one rank runs it: for every formal operand, where it will lie once the block is bound
// to a layer and a micro-batch. Temporaries share the workspace, each from its first use to its
// last.

#include <cstdint>
#include <string>
#include <vector>

#include "executor/device/device.hpp"
#include "models/program/program.hpp"

namespace orrery::executor {

/// What an operand's address is counted from.
enum class Base : std::uint8_t {
  parameter,  // of the bound layer
  frozen,     // ... one that is not trained
  gradient,
  saved,    // of the bound layer and micro-batch
  kept,     // ... of it, what weight gradients read
  delayed,  // ... and what backward makes for them
  input,    // what the block before wrote
  output,   // what the block after reads
  on_host,  // of the bound layer and micro-batch, what the host keeps of it
  workspace,
  tokens,  // of the micro-batch
  labels,
};
inline constexpr int base_count = 12;

constexpr std::int64_t aligned(std::int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/// Bytes of one element.
constexpr std::int64_t width_of(models::DType type) {
  return bits(type) / 8;
}

struct BlockPlan {
  struct Source {
    Base base = Base::workspace;
    std::int64_t offset = 0;  // bytes; parameters and gradients lie where the layout says
  };
  std::vector<View> views;  // by operand, without their data
  std::vector<Source> sources;
  std::vector<models::Operation> operations;  // of `executed`
  std::int64_t workspace = 0;                 // bytes
  std::int64_t scratch = 0;                   // where among them collectives pack what they move
  std::int64_t saved = 0;                     // bytes that forward leaves for backward
  std::int64_t kept = 0, delayed = 0;         // ... and both of them for weight gradients
  std::int64_t on_host = 0;                   // ... and what the host keeps meanwhile
  std::int64_t arrival = -1;  // where among them the input lies; -1: backward does not read it
  /// Of a backward block: where among what it delays its input lies; -1: no weight gradient does.
  std::int64_t delayed_arrival = -1;
};

/// Operations that go through their rows piece by piece, with the collectives between them: of what
/// a piece made and the next operation reads of it, or of all that they make.
struct PieceRegion {
  std::size_t first = 0, end = 0;

  /// Does it gather something of a piece that the piece goes on with?
  static bool gathers(const std::vector<models::Operation>& operations, std::size_t i);
};
/// The region that an operation is in; empty where it is in none.
PieceRegion piece_region(const std::vector<models::Operation>& operations, std::size_t i);

/// A block as it is executed: what is stored transposed (the vocabulary head's weight lies as
/// [vocab, hidden], like the table that it may be tied to) is read transposed by its products, and
/// its gradient is the transposed product. Everything else is the block's own.
models::Block executed(const models::Block& block);

/// Plans of a forward block, its backward block and, where that is split, the weight gradients.
struct BlockPlans {
  BlockPlan forward, backward, weight_gradient;
};
BlockPlans plan_blocks(const models::Block& forward, const models::Block& backward,
                       const models::Block* weight_gradient = nullptr);

}  // namespace orrery::executor
