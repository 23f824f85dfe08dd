#include <algorithm>

#include "models/lowering/lower.hpp"
#include "models/pricing/price.hpp"

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

}  // namespace

GroupShape shape_of(const Mesh& mesh, const Communicator& communicator, int gpus_per_node) {
  const auto world = static_cast<int>(mesh.ranks());
  const auto degree = [&](MeshAxis axis) {
    return axis == MeshAxis::tensor ? mesh.tensor
           : axis == MeshAxis::data ? mesh.data
                                    : mesh.pipeline;
  };
  const auto stride = [&](MeshAxis axis) {
    return axis == MeshAxis::tensor ? 1
           : axis == MeshAxis::data ? mesh.tensor
                                    : mesh.tensor * mesh.data;
  };
  if (!communicator.stages.empty()) {
    const std::int64_t apart = (mesh.pipeline - 1) * stride(MeshAxis::pipeline);
    return apart == 0 ? GroupShape{} : pair_of(apart, gpus_per_node, mesh.tensor * mesh.data);
  }
  if (communicator.spans.size() == 1) {
    const MeshAxis axis = communicator.spans.front();
    const Axis line{.stride = static_cast<int>(stride(axis)),
                    .extent = static_cast<int>(degree(axis)),
                    .world = world,
                    .gpus_per_node = gpus_per_node};
    return axis == MeshAxis::pipeline && degree(axis) > 1 ? neighbours_of(line) : shape_of(line);
  }
  GroupShape all =
      shape_of(Axis{.stride = 1, .extent = world, .world = world, .gpus_per_node = gpus_per_node});
  const bool everyone = communicator.spans.size() == 3;
  if (!everyone) {  // tensor and pipeline: one replica's ranks, spread like its stages
    all.ranks = static_cast<int>(mesh.tensor * mesh.pipeline);
    all.nodes = std::min(all.nodes, all.ranks);
    all.ranks_per_node = std::max(1, all.ranks / all.nodes);
  }
  return all;
}

}  // namespace orrery::models
