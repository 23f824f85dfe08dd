#pragma once
// Runs of a chunk in parts, and the buckets that their backward fills and that are reduced: one
// half of models/lowering/shards.cpp.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "models/lowering/segments.hpp"

namespace orrery::models {

/// A part of a run: its phase, and what of the model it runs.
struct ShardPart {
  std::uint32_t phase = 0;
  Segment segment;  // its phase moved out
};

/// One part of one slot, or an instruction that runs no part of the model.
struct ShardRun {
  Instruction instruction;
  const ShardPart* part = nullptr;
};

/// Elements that are reduced after a part: those of experts with replicas of their own apart.
struct ReducedElements {
  std::int64_t dense = 0, experts = 0;
};

/// Buckets of one class of ranks: one or two that backward fills in turn, as many for experts that
/// have replicas of their own, and that of a table which embedding and head share.
class GradientBuckets {
 public:
  GradientBuckets(Program& program, std::uint32_t rank_class, bool overlaps);

  /// Elements of what is reduced together after a part: nothing after the first part that adds to
  /// a unit of two.
  ReducedElements elements_after(const ShardPart& part) const;
  /// Makes the buffers that these parts of backward fill.
  void add(const std::vector<const ShardPart*>& parts);
  /// The reduction that emptied the bucket which a part fills; a head adds to a shared table's,
  /// too.
  std::uint32_t emptied(const ShardPart& part) const;
  /// Reduces what a run has filled; where gradients stay whole, after the last micro-batch.
  void reduce(const ShardRun& run, bool last);

 private:
  /// Buckets of one size that backward fills in turn.
  struct Turns {
    std::size_t first = 0, count = 0, filled = 0;

    std::size_t next() const { return first + filled % std::max<std::size_t>(count, 1); }
  };

  bool fills_own(const ShardPart& part) const;
  std::size_t index_of(const ShardPart& part) const;
  void hold(Turns& turns, const std::string& name, std::int64_t largest, std::size_t fillings);
  void reduce_bucket(JointCollective joint, std::size_t bucket, const ShardRun& run);
  std::uint32_t push(JointCollective joint, const ShardRun& run);

  Program& program_;
  std::uint32_t class_;
  RankClass& ranks_;
  bool overlaps_;
  bool shares_table_;  // embedding and head, on one stage
  Turns dense_, experts_;
  std::size_t own_ = 0;                 // the shared table's
  std::vector<std::uint32_t> reduced_;  // by bucket: the reduction that emptied it last
};

/// Have experts replicas of their own, of which each holds a share of their state?
bool shards_experts(const Program& program);

/// Elements of each rank's equal piece, the last one padded.
inline std::int64_t piece_of(const Program& program, std::int64_t elements,
                             MeshView view = MeshView::dense) {
  const std::int64_t shards =
      view == MeshView::experts ? program.mesh.degree(MeshAxis::expert_data) : program.shards();
  return (elements + shards - 1) / shards;
}

inline Bytes bytes_in(DType type, std::int64_t elements) {
  return Bytes{elements * bits(type) / 8};
}

}  // namespace orrery::models
