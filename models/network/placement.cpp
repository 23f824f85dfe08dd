#include "models/network/placement.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/errors.hpp"
#include "sim/input/text.hpp"

namespace orrery::models {

namespace {

/// Shape of a pair of ranks `distance` apart: on one node, or on two together with the sibling
/// pairs that send at once.
GroupShape pair_of(std::int64_t distance, int gpus_per_node, std::int64_t siblings) {
  const bool crosses = distance >= gpus_per_node;
  GroupShape shape;
  shape.ranks = 2;
  shape.nodes = crosses ? 2 : 1;
  shape.ranks_per_node = crosses ? 1 : 2;
  shape.groups_per_node = static_cast<int>(std::clamp<std::int64_t>(siblings, 1, gpus_per_node));
  return shape;
}

bool spans_experts(AxisSet set) {
  return std::ranges::any_of(axes, [&](const AxisRow& each) {
    return each.view == MeshView::experts && set.has(each.axis);
  });
}

/// Megatron's names of the mesh axes, and the axes that they mean in the dense and the expert mesh.
struct OrderedAxes {
  std::string_view name;
  std::vector<MeshAxis> axes;
};
const std::vector<OrderedAxes>& ordered_axes() {
  static const std::vector<OrderedAxes> known{
      {"tp", {MeshAxis::tensor, MeshAxis::expert_tensor}},
      {"cp", {MeshAxis::context_heads, MeshAxis::context}},
      {"ep", {MeshAxis::expert}},
      {"dp", {MeshAxis::data, MeshAxis::replica, MeshAxis::expert_data}},
      {"pp", {MeshAxis::pipeline}}};
  return known;
}

std::vector<MeshAxis> without(std::vector<MeshAxis> all, MeshView view) {
  std::erase_if(all, [&](MeshAxis each) { return row_of(each).view == view; });
  return all;
}

/// Merges axes of one view that are adjacent in the order into one strided axis; nothing if they
/// are not adjacent.
std::optional<Axis> line_of(const Mesh& mesh, AxisSet set, int gpus_per_node,
                            const AxisOrder& order) {
  const bool experts = spans_experts(set);
  std::optional<Axis> line;
  bool ended = false;
  for (const MeshAxis each : order.fastest_first()) {
    const MeshView view = row_of(each).view;
    if (view == (experts ? MeshView::dense : MeshView::experts)) {
      if (set.has(each)) return std::nullopt;
      continue;
    }
    if (!set.has(each)) {
      ended = ended || (line && mesh.degree(each) > 1);
      continue;
    }
    if ((line && ended) || (experts && view == MeshView::stages)) return std::nullopt;
    if (!line) {
      line = Axis{.stride = static_cast<int>(order.stride(mesh, each)),
                  .extent = 1,
                  .world = static_cast<int>(mesh.ranks()),
                  .gpus_per_node = gpus_per_node};
    }
    line->extent *= static_cast<int>(mesh.degree(each));
  }
  return line;
}

}  // namespace

AxisOrder::AxisOrder() {
  for (const AxisRow& each : axes) axes_.push_back(each.axis);
}

AxisOrder::AxisOrder(std::vector<MeshAxis> fastest_first) : axes_{std::move(fastest_first)} {
  const AxisOrder own;
  std::vector<MeshAxis> sorted = axes_;
  std::ranges::sort(sorted);
  ensure(sorted == own.axes_, "an order has each axis once");
  for (const MeshView view : {MeshView::dense, MeshView::experts}) {
    usual_ = usual_ && without(axes_, view) == without(own.axes_, view);
  }
}

bool AxisOrder::keeps_stages(const Mesh& mesh) const {
  std::int64_t dense = 1, experts = 1;  // product of the axes that vary faster than the pipeline
  for (const MeshAxis each : axes_) {
    if (each == MeshAxis::pipeline) break;
    (row_of(each).view == MeshView::dense ? dense : experts) *= mesh.degree(each);
  }
  return dense == experts || mesh.degree(MeshAxis::pipeline) == 1;
}

std::int64_t AxisOrder::stride(const Mesh& mesh, MeshAxis axis) const {
  const MeshView other =
      row_of(axis).view == MeshView::experts ? MeshView::dense : MeshView::experts;
  std::int64_t product = 1;
  for (const MeshAxis faster : axes_) {
    if (faster == axis) break;
    if (row_of(faster).view != other) product *= mesh.degree(faster);
  }
  return product;
}

std::int64_t AxisOrder::place(const Mesh& mesh, std::int64_t rank) const {
  std::int64_t place = 0;
  for (const MeshAxis each : axes_) {
    if (row_of(each).view == MeshView::experts) continue;
    place += mesh.coordinate(rank, each) * stride(mesh, each);
  }
  return place;
}

std::int64_t AxisOrder::rank_at(const Mesh& mesh, std::int64_t place) const {
  std::int64_t rank = 0;
  for (const MeshAxis each : axes_) {
    if (row_of(each).view == MeshView::experts) continue;
    rank += place / stride(mesh, each) % mesh.degree(each) * mesh.stride(each);
  }
  return rank;
}

std::vector<std::int64_t> AxisOrder::members(const Mesh& mesh, std::int64_t rank,
                                             AxisSet set) const {
  if (!spans_experts(set) || usual()) return mesh.members(rank, set);
  std::vector<std::int64_t> places{place(mesh, rank)};
  for (const MeshAxis each : axes_) {
    if (!set.has(each)) continue;
    const std::int64_t step = stride(mesh, each), degree = mesh.degree(each);
    std::vector<std::int64_t> wider;
    for (const std::int64_t from : places) {
      const std::int64_t first = from - from / step % degree * step;
      for (std::int64_t i = 0; i < degree; ++i) wider.push_back(first + i * step);
    }
    places = std::move(wider);
  }
  std::vector<std::int64_t> found;
  for (const std::int64_t each : places) found.push_back(rank_at(mesh, each));
  std::ranges::sort(found);
  return found;
}

/// Source  Megatron-LM, parallel_state.py, RankGenerator: the first axis is the fastest
std::optional<AxisOrder> axis_order(std::string_view names) {
  std::vector<MeshAxis> order;
  for (const std::string_view name : split(names, '-')) {
    const auto known = std::ranges::find(ordered_axes(), name, &OrderedAxes::name);
    if (known == ordered_axes().end()) return std::nullopt;
    order.insert(order.end(), known->axes.begin(), known->axes.end());
  }
  std::vector<MeshAxis> sorted = order;
  std::ranges::sort(sorted);
  const bool once = std::ranges::adjacent_find(sorted) == sorted.end();
  if (!once || std::ssize(sorted) != axis_count) return std::nullopt;
  return AxisOrder{std::move(order)};
}

AxisOrder order_of(const AxisOrder& asked, std::string_view of_plan) {
  if (of_plan.empty() || !asked.usual()) return asked;
  auto order = axis_order(of_plan);
  ensure(order.has_value(), "a plan's order of ranks names each axis once");
  return *std::move(order);
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
  if (!everyone) {  // such as one replica's tensor and pipeline ranks: taken as spread over nodes
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
