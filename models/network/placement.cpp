#include "models/network/placement.hpp"

#include <algorithm>
#include <optional>

namespace orrery::models {

namespace {

/// Two ranks a fixed distance apart: on one node, or on two with all their siblings.
GroupShape pair_of(std::int64_t distance, int gpus_per_node, std::int64_t siblings) {
  const bool crosses = distance >= gpus_per_node;
  GroupShape shape;
  shape.ranks = 2;
  shape.nodes = crosses ? 2 : 1;
  shape.ranks_per_node = crosses ? 1 : 2;
  shape.groups_per_node = static_cast<int>(std::clamp<std::int64_t>(siblings, 1, gpus_per_node));
  return shape;
}

/// Axes of one view with none between them are one line of ranks.
std::optional<Axis> line_of(const Mesh& mesh, AxisSet set, int gpus_per_node) {
  std::optional<Axis> line;
  MeshView view{};
  bool ended = false;
  for (const AxisRow& each : axes) {
    if (!set.has(each.axis)) {
      ended = ended || (line && each.view == view && mesh.degree(each.axis) > 1);
      continue;
    }
    if (line && (ended || each.view != view)) return std::nullopt;
    const auto degree = static_cast<int>(mesh.degree(each.axis));
    if (!line) {
      line = Axis{.stride = static_cast<int>(mesh.stride(each.axis)),
                  .extent = 1,
                  .world = static_cast<int>(mesh.ranks()),
                  .gpus_per_node = gpus_per_node};
      view = each.view;
    }
    line->extent *= degree;
  }
  return line;
}

}  // namespace

GroupShape shape_of(const Mesh& mesh, const Communicator& communicator, int gpus_per_node) {
  const AxisSet pipeline = MeshAxis::pipeline;
  if (!communicator.stages.empty()) {
    const std::int64_t apart = (mesh.degree(pipeline) - 1) * mesh.stride(MeshAxis::pipeline);
    return apart == 0 ? GroupShape{} : pair_of(apart, gpus_per_node, mesh.stage_ranks());
  }
  if (const auto line = line_of(mesh, communicator.axes, gpus_per_node)) {
    const bool pipe = communicator.axes == pipeline && line->extent > 1;
    return pipe ? neighbours_of(*line) : shape_of(*line);
  }
  const auto world = static_cast<int>(mesh.ranks());
  GroupShape all =
      shape_of(Axis{.stride = 1, .extent = world, .world = world, .gpus_per_node = gpus_per_node});
  const bool everyone =
      communicator.axes.includes({MeshAxis::tensor, MeshAxis::data, MeshAxis::pipeline});
  if (!everyone) {  // as one replica's tensor and pipeline ranks: spread like its stages
    all.ranks = static_cast<int>(mesh.degree(communicator.axes));
    all.nodes = std::min(all.nodes, all.ranks);
    all.ranks_per_node = std::max(1, all.ranks / all.nodes);
  }
  return all;
}

GroupShape shape_of(const Mesh& mesh, const Communicator& communicator, Collective operation,
                    int gpus_per_node) {
  const bool passes = operation == Collective::send_receive && communicator.stages.empty();
  const auto line = passes ? line_of(mesh, communicator.axes, gpus_per_node) : std::nullopt;
  if (!line || line->extent < 3) return shape_of(mesh, communicator, gpus_per_node);
  return neighbours_of(*line);
}

}  // namespace orrery::models
