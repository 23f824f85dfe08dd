#pragma once
// Where the groups of a communicator sit on the nodes of a cluster: ranks fill nodes in order.
// Which axis' ranks are neighbours there, an order of axes says.

#include <cstdint>
#include <vector>

#include "models/network/collectives/group.hpp"
#include "models/program/mesh.hpp"

namespace orrery::models {

/// In which order ranks are counted: those that differ along its first axis are next to each other.
/// Usually that is a mesh's own, Megatron's "tp-cp-ep-dp-pp". Both views of a stage's ranks are
/// counted by it, so another order folds experts over other ranks.
/// Source  Megatron-LM, parallel_state.py: one RankGenerator for each view, by the same order
class AxisOrder {
 public:
  AxisOrder();
  /// All axes, each once.
  explicit AxisOrder(std::vector<MeshAxis> fastest_first);

  bool usual() const { return usual_; }
  const std::vector<MeshAxis>& fastest_first() const { return axes_; }
  /// Do both views put the same ranks on a stage?
  bool keeps_stages(const Mesh& mesh) const;
  /// Places from one coordinate of an axis to the next.
  std::int64_t stride(const Mesh& mesh, MeshAxis axis) const;
  /// The place of a rank among all.
  std::int64_t place(const Mesh& mesh, std::int64_t rank) const;
  /// Mesh::members where experts are folded over ranks by their places.
  std::vector<std::int64_t> members(const Mesh& mesh, std::int64_t rank, AxisSet set) const;

 private:
  std::int64_t rank_at(const Mesh& mesh, std::int64_t place) const;

  std::vector<MeshAxis> axes_;
  bool usual_ = true;
};

/// Where the members of a communicator sit, and with whom they share NICs: the worst group of
/// those that run at once. Along the pipeline axis alone it is a pair of neighbours, or of the two
/// stages that it names.
GroupShape shape_of(const Mesh& mesh, const Communicator& communicator, int gpus_per_node,
                    const AxisOrder& order = {});
/// Of those that take part in one operation: a message round a group of several is between
/// neighbours, all of which send at once.
GroupShape shape_of(const Mesh& mesh, const Communicator& communicator, Collective operation,
                    int gpus_per_node, const AxisOrder& order = {});

}  // namespace orrery::models
