#pragma once
// Switches and cables of a fabric, counted as its kind counts them: levels, spines and pods of a
// tree, groups of a dragonfly, dimensions of a torus.

#include "hardware/read_fabric.hpp"

namespace orrery::hardware {

/// Every count that the fabric's kind needs is there afterwards, stated or derived.
/// Errors  counts that contradict each other, hold too few nodes or belong to other kinds:
///         InputErrors with their pointer
void read_shape(const Node& node, NodeCounts counts, ClusterFabric& fabric);

/// Cables between the two nodes that are farthest apart.
int longest_path(const ClusterFabric& fabric, NodeCounts counts);

}  // namespace orrery::hardware
