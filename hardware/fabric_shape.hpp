#pragma once
// Reads how many switches and cables a fabric has, in the terms of its kind: levels, spines and
// pods of a tree, groups of a dragonfly, dimensions of a torus.

#include "hardware/read_fabric.hpp"

namespace orrery::hardware {

/// Sets every count that the fabric's kind needs, stated or derived.
/// Errors  counts that contradict each other, hold too few nodes or belong to other kinds:
///         InputErrors with their pointer
void read_shape(const Node& node, NodeCounts counts, ClusterFabric& fabric);

/// Cables between the two nodes that are farthest apart.
int longest_path(const ClusterFabric& fabric, NodeCounts counts);

}  // namespace orrery::hardware
