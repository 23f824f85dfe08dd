#pragma once
// Adam's two moments of the elements that a rank owns, stored in the plan's format: the state's
// own, bf16, or 8 bits in blocks of 256 with one scale each; each bucket begins a new block.
// Checkpoints have the moments in the state's format.

#include <array>
#include <vector>

#include "executor/run/rank_context.hpp"

namespace orrery::executor {

/// The moments of one rank.
class OptimizerMoments {
 public:
  explicit OptimizerMoments(const RankContext& rank);

  /// Bytes of both moments and their scales, which `place` gives memory.
  std::int64_t bytes() const;
  void place(std::byte* memory) { memory_ = memory; }

  bool in_blocks() const { return format_ == models::DType::uint8; }
  View numbers(StateKind kind, std::int64_t local, std::int64_t count) const;
  /// The scales of the bucket whose owned piece begins at `local`.
  View scales(StateKind kind, std::int64_t local) const;

  /// Copies `count` elements from `local` on, in the state's format.
  void read(StateKind kind, std::int64_t local, std::int64_t count, void* to) const;
  void load(StateKind kind, std::int64_t local, std::int64_t count, const void* from);
  /// Stores what was loaded, once all of it is known: the scale of an 8-bit block is the largest
  /// magnitude in it.
  void finish_loading();

 private:
  std::int64_t all() const { return rank_.layout.owned(); }
  std::byte* scale_memory(StateKind kind) const;
  template <class Visit>
  void for_each_block(Visit visit) const;
  template <class T>
  void read_as(StateKind kind, std::int64_t local, std::int64_t count, T* to) const;
  std::vector<double> widened(StateKind kind) const;

  const RankContext& rank_;
  models::DType state_, format_;
  std::vector<std::int64_t> first_block_;      // of each bucket; then the number of blocks
  std::byte* memory_ = nullptr;                // first moments, second moments, then their scales
  std::array<std::vector<double>, 2> loaded_;  // until finish_loading
};

}  // namespace orrery::executor
