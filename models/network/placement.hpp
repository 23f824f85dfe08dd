#pragma once
// Placement of a communicator's groups on the nodes of a cluster. Ranks fill nodes in order; an
// order of mesh axes says which axes vary fastest. Leaves out scattered nodes (scattered.hpp).

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/network/collectives/group.hpp"
#include "models/program/mesh.hpp"

namespace orrery::models {

/// The order in which ranks are numbered: ranks that differ along the first axis are adjacent. The
/// default is the mesh's own, Megatron's "tp-cp-ep-dp-pp". Both views of a stage's ranks (dense and
/// experts) use it, so another order puts an expert group on other ranks. A place is a rank's
/// number in this order. Source  Megatron-LM, parallel_state.py: one RankGenerator for each view,
/// by the same order
class AxisOrder {
 public:
  AxisOrder();
  /// Errors  an axis that is missing or given twice: ContractError
  explicit AxisOrder(std::vector<MeshAxis> fastest_first);

  bool usual() const { return usual_; }
  const std::vector<MeshAxis>& fastest_first() const { return axes_; }
  /// Do the dense and the expert view put the same ranks on each pipeline stage?
  bool keeps_stages(const Mesh& mesh) const;
  /// Distance in places between neighbours along an axis.
  std::int64_t stride(const Mesh& mesh, MeshAxis axis) const;
  /// The place of a rank.
  std::int64_t place(const Mesh& mesh, std::int64_t rank) const;
  /// Mesh::members, with groups of the expert axes formed by place.
  std::vector<std::int64_t> members(const Mesh& mesh, std::int64_t rank, AxisSet set) const;

 private:
  std::int64_t rank_at(const Mesh& mesh, std::int64_t place) const;

  std::vector<MeshAxis> axes_;
  bool usual_ = true;
};

/// The order by Megatron's names of the axes, the fastest first: "tp-cp-ep-dp-pp"; nullopt unless
/// each of these five is named once.
std::optional<AxisOrder> axis_order(std::string_view names);
/// The order asked for, or if that is the usual one, a plan's own (empty: the usual one).
AxisOrder order_of(const AxisOrder& asked, std::string_view of_plan);

/// How a communicator's group spans nodes and how many groups share their NICs: the worst of the
/// groups that run at once. Along the pipeline axis alone, a pair of neighbouring stages, or of the
/// two stages that the communicator names.
GroupShape shape_of(const Mesh& mesh, const Communicator& communicator, int gpus_per_node,
                    const AxisOrder& order = {});
/// The same for one operation: a send_receive round a group of three or more is between neighbours,
/// all of which send at once.
GroupShape shape_of(const Mesh& mesh, const Communicator& communicator, Collective operation,
                    int gpus_per_node, const AxisOrder& order = {});

}  // namespace orrery::models
