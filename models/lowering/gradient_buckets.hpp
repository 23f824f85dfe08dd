#pragma once
// Gradient buckets of ZeRO-2 and 3: the parts into which a chunk's runs are cut, the buckets that
// their backward fills, and the reductions that empty these. Gathers of parameters are left to
// models/lowering/shards.cpp, which uses this.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "models/lowering/segments.hpp"

namespace orrery::models {

/// A part of a chunk's forward or backward: its phase, and the layers and units that it runs.
struct ShardPart {
  std::uint32_t phase = 0;
  Segment segment;
};

/// One part of one slot of the schedule; or, without `part`, an instruction that runs no layers.
struct ShardRun {
  Instruction instruction;
  const ShardPart* part = nullptr;
};

/// Elements that are reduced after a part; experts with replicas of their own are counted
/// separately.
struct ReducedElements {
  std::int64_t dense = 0, experts = 0;
};

/// Buckets of one rank class: one or two that backward fills in turn, as many for experts with
/// replicas of their own, and one for a table that embedding and head share.
class GradientBuckets {
 public:
  GradientBuckets(Program& program, std::uint32_t rank_class, bool overlaps);

  /// Elements that are reduced after a part; of `dense` 0 after the first of two parts that add to
  /// the same unit, head and embedding.
  ReducedElements elements_after(const ShardPart& part) const;
  /// Adds the buffers of the buckets that these parts of backward fill.
  void add(const std::vector<const ShardPart*>& parts);
  /// The latest reduction that emptied a bucket which a part fills: a joint collective, or
  /// no_binding. A head fills the bucket of a shared table, too.
  std::uint32_t emptied(const ShardPart& part) const;
  /// Adds the reduction of what a run has filled; where gradients are not sharded, only after the
  /// last micro-batch.
  void reduce(const ShardRun& run, bool last);

 private:
  /// Buckets of one size that backward fills in turn.
  struct Turns {
    std::size_t first = 0, count = 0, filled = 0;

    std::size_t next() const { return first + filled % std::max<std::size_t>(count, 1); }
  };

  bool fills_shared(const ShardPart& part) const;
  std::size_t index_of(const ShardPart& part) const;
  void hold(Turns& turns, const std::string& name, std::int64_t largest, std::size_t fillings);
  void reduce_bucket(JointCollective joint, std::size_t bucket, const ShardRun& run);
  std::uint32_t push(JointCollective joint, const ShardRun& run);

  Program& program_;
  std::uint32_t class_;
  RankClass& ranks_;
  bool overlaps_;
  bool shares_table_;  // embedding and head are on one stage and share a table
  Turns dense_, experts_;
  std::size_t shared_ = 0;              // index of the shared table's bucket
  std::vector<std::uint32_t> reduced_;  // by bucket: the reduction that last emptied it
};

/// The unit of experts that is gathered with a part's dense unit, if there is one: those of its
/// layer or of the head. Where embedding and head are one unit, the head's experts, whichever of
/// them runs.
const Unit* sharded_experts(const Program& program, const Segment& part);

/// Elements of one rank's piece, where state is cut into equal pieces and the last one padded.
inline std::int64_t piece_of(const Program& program, std::int64_t elements,
                             MeshView view = MeshView::dense) {
  const std::int64_t shards =
      view == MeshView::experts ? program.mesh.degree(MeshAxis::expert_data) : program.shards();
  return equal_piece(elements, shards);
}

}  // namespace orrery::models
