#include "models/network/collectives/group.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

#include "sim/errors.hpp"

namespace orrery::models {
namespace {

void check(const Axis& axis) {
  ensure(axis.stride >= 1 && axis.extent >= 1 && axis.world >= 1 && axis.gpus_per_node >= 1,
         "an axis has a stride, an extent, a world and GPUs per node of at least 1");
  ensure(axis.world % (axis.stride * axis.extent) == 0,
         "the ranks of a world are a multiple of an axis' stride times its extent");
}

/// The nodes of one group, ascending, and the number of its members on each.
std::map<int, int> members_by_node(const Axis& axis, int first) {
  std::map<int, int> members;
  for (int i = 0; i < axis.extent; ++i) ++members[(first + i * axis.stride) / axis.gpus_per_node];
  return members;
}

bool is_worse(const GroupShape& a, const GroupShape& b) {
  return a.nodes != b.nodes ? a.nodes > b.nodes : a.ranks_per_node < b.ranks_per_node;
}

/// Searches all groups for the worst one, where degrees do not divide a node.
GroupShape worst_of_all(const Axis& axis) {
  GroupShape worst{.ranks = axis.extent, .nodes = 0};
  std::map<int, int> groups_on;
  int longest_stride = 1;
  const int block = axis.stride * axis.extent;
  // Groups lie in nodes as those one period before them do.
  const std::int64_t period = std::lcm(std::int64_t{block}, std::int64_t{axis.gpus_per_node});
  const auto end = static_cast<int>(std::min(period, std::int64_t{axis.world}));
  for (int start = 0; start < end; start += block) {
    for (int first = start; first < start + axis.stride; ++first) {
      const auto members = members_by_node(axis, first);
      GroupShape group{.ranks = axis.extent, .nodes = static_cast<int>(members.size())};
      group.ranks_per_node = axis.extent;
      int previous = members.begin()->first;
      for (const auto& [node, count] : members) {
        group.ranks_per_node = std::min(group.ranks_per_node, count);
        longest_stride = std::max(longest_stride, node - previous);
        previous = node;
        ++groups_on[node];
      }
      if (worst.nodes == 0 || is_worse(group, worst)) worst = group;
    }
  }
  for (const auto& [node, groups] : groups_on) {
    worst.groups_per_node = std::max(worst.groups_per_node, groups);
  }
  worst.node_stride = longest_stride;
  return worst;
}

}  // namespace

GroupShape shape_of(const Axis& axis) {
  check(axis);
  const int gpus = axis.gpus_per_node;
  const int block = axis.stride * axis.extent;
  if (gpus % block == 0) {  // whole groups inside every node
    return {.ranks = axis.extent,
            .nodes = 1,
            .ranks_per_node = axis.extent,
            .groups_per_node = std::min(gpus, axis.world) / axis.extent,
            .node_stride = 1};
  }
  if (axis.stride % gpus == 0) {  // one member on each of its nodes
    return {.ranks = axis.extent,
            .nodes = axis.extent,
            .ranks_per_node = 1,
            .groups_per_node = gpus,
            .node_stride = axis.extent > 1 ? axis.stride / gpus : 1};
  }
  if (gpus % axis.stride == 0 && block % gpus == 0) {  // whole contiguous nodes
    return {.ranks = axis.extent,
            .nodes = block / gpus,
            .ranks_per_node = gpus / axis.stride,
            .groups_per_node = axis.stride,
            .node_stride = 1};
  }
  return worst_of_all(axis);
}

GroupShape neighbours_of(const Axis& axis) {
  check(axis);
  const bool longer_than_node = (axis.extent - 1) * axis.stride >= axis.gpus_per_node;
  if (!longer_than_node) {
    const GroupShape whole = shape_of(axis);
    if (axis.extent == 1) return whole;
    if (whole.nodes == 1) {
      return {
          .ranks = 2, .nodes = 1, .ranks_per_node = 2, .groups_per_node = whole.groups_per_node};
    }
  }
  // On each node, the ranks less than one stride before its end send to the next node.
  return {.ranks = 2,
          .nodes = 2,
          .ranks_per_node = 1,
          .groups_per_node = std::min(axis.stride, axis.gpus_per_node),
          .node_stride = std::max(1, axis.stride / axis.gpus_per_node)};
}

}  // namespace orrery::models
