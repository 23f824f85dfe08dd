#pragma once
// Reads how many switches and cables a fabric has, in the terms of its kind: levels, spines and
// pods of a tree, groups of a dragonfly, dimensions of a torus.

#include <string>
#include <vector>

#include "hardware/cluster/read_fabric.hpp"

namespace orrery::hardware {

/// Sets every count that the fabric's kind needs, stated or derived.
/// Errors  counts that contradict each other, hold too few nodes or belong to other kinds:
///         InputErrors with their pointer
void read_shape(const Node& node, NodeCounts counts, ClusterFabric& fabric);

/// Gives a fabric another kind: erases the counts that describe other kinds, except those `kept`,
/// and returns their keys. Nothing is erased if there is no such kind.
std::vector<std::string> drop_other_shapes(Json& fabric, const Json& kind,
                                           const std::vector<std::string>& kept = {});

/// Which counts of its shape a fabric does not state, what they are, and whose they are; empty if
/// it states all.
std::string assumed_shape(const Node& node, NodeCounts counts, const ClusterFabric& fabric);

/// Cables between the two nodes that are farthest apart.
int longest_path(const ClusterFabric& fabric, NodeCounts counts);

}  // namespace orrery::hardware
