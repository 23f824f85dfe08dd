#include "models/network/placement.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/errors.hpp"

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

/// A view's axes in the order of places; experts are never reordered.
std::vector<MeshAxis> lined_up(const AxisOrder& order) {
  std::vector<MeshAxis> all = order.fastest_first();
  for (const AxisRow& each : axes) {
    if (each.view == MeshView::experts) all.push_back(each.axis);
  }
  return all;
}

/// Axes of one view with none between them are one line of ranks.
std::optional<Axis> line_of(const Mesh& mesh, AxisSet set, int gpus_per_node,
                            const AxisOrder& order) {
  std::optional<Axis> line;
  MeshView view{};
  bool ended = false;
  for (const MeshAxis each : lined_up(order)) {
    const bool experts = row_of(each).view == MeshView::experts;
    const MeshView seen = experts ? MeshView::experts : MeshView::dense;
    if (!set.has(each)) {
      ended = ended || (line && seen == view && mesh.degree(each) > 1);
      continue;
    }
    if (line && (ended || seen != view)) return std::nullopt;
    const auto degree = static_cast<int>(mesh.degree(each));
    if (!line) {
      line = Axis{.stride = static_cast<int>(order.stride(mesh, each)),
                  .extent = 1,
                  .world = static_cast<int>(mesh.ranks()),
                  .gpus_per_node = gpus_per_node};
      view = seen;
    }
    line->extent *= degree;
  }
  return line;
}

}  // namespace

AxisOrder::AxisOrder() {
  for (const AxisRow& each : axes) {
    if (each.view != MeshView::experts) axes_.push_back(each.axis);
  }
}

AxisOrder::AxisOrder(std::vector<MeshAxis> fastest_first) : axes_{std::move(fastest_first)} {
  std::vector<MeshAxis> sorted = axes_;
  std::sort(sorted.begin(), sorted.end());
  ensure(sorted == AxisOrder{}.axes_, "an order has each axis of ranks once");
}

bool AxisOrder::usual() const {
  return axes_ == AxisOrder{}.axes_;
}

std::int64_t AxisOrder::stride(const Mesh& mesh, MeshAxis axis) const {
  if (row_of(axis).view == MeshView::experts) return mesh.stride(axis);
  std::int64_t product = 1;
  for (const MeshAxis faster : axes_) {
    if (faster == axis) break;
    product *= mesh.degree(faster);
  }
  return product;
}

std::int64_t AxisOrder::place(const Mesh& mesh, std::int64_t rank) const {
  std::int64_t place = 0;
  for (const MeshAxis each : axes_) place += mesh.coordinate(rank, each) * stride(mesh, each);
  return place;
}

GroupShape shape_of(const Mesh& mesh, const Communicator& communicator, int gpus_per_node,
                    const AxisOrder& order) {
  const AxisSet pipeline = MeshAxis::pipeline;
  if (!communicator.stages.empty()) {
    const std::int64_t apart = (mesh.degree(pipeline) - 1) * order.stride(mesh, MeshAxis::pipeline);
    return apart == 0 ? GroupShape{} : pair_of(apart, gpus_per_node, mesh.stage_ranks());
  }
  if (const auto line = line_of(mesh, communicator.axes, gpus_per_node, order)) {
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
                    int gpus_per_node, const AxisOrder& order) {
  const bool passes = operation == Collective::send_receive && communicator.stages.empty();
  const auto line = passes ? line_of(mesh, communicator.axes, gpus_per_node, order) : std::nullopt;
  if (!line || line->extent < 3) return shape_of(mesh, communicator, gpus_per_node, order);
  return neighbours_of(*line);
}

}  // namespace orrery::models
