#pragma once
// Both moments of what a rank owns, in the format that the plan keeps them in: the state's own,
// bf16, or 8 bits, in blocks of 256 that begin anew with each bucket and have a scale each.
// Checkpoints have them in the state's format.

#include <array>
#include <vector>

#include "executor/run/rank_context.hpp"

namespace orrery::executor {

class OptimizerMoments {
 public:
  explicit OptimizerMoments(const RankContext& rank);

  /// Of both; `place` says where they lie.
  std::int64_t bytes() const;
  void place(std::byte* memory) { memory_ = memory; }

  bool in_blocks() const { return format_ == models::DType::uint8; }
  View numbers(StateKind kind, std::int64_t local, std::int64_t count) const;
  /// Of a bucket whose owned piece begins at `local`.
  View scales(StateKind kind, std::int64_t local) const;

  /// In the state's format.
  void read(StateKind kind, std::int64_t local, std::int64_t count, void* to) const;
  void load(StateKind kind, std::int64_t local, std::int64_t count, const void* from);
  /// What was loaded is stored: a block is as fine as the largest of all its numbers.
  void finish_loading();

 private:
  std::int64_t all() const { return rank_.layout.owned(); }
  std::byte* scale_memory(StateKind kind) const;
  template <class T>
  void read_as(StateKind kind, std::int64_t local, std::int64_t count, T* to) const;
  std::vector<double> widened(StateKind kind) const;

  const RankContext& rank_;
  models::DType state_, format_;
  std::vector<std::int64_t> first_block_;  // by bucket; then how many there are
  std::byte* memory_ = nullptr;            // numbers of the first, of the second, scales of each
  std::array<std::vector<double>, 2> loaded_;
};

}  // namespace orrery::executor
