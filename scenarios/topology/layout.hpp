#pragma once
// Positions of boxes and cables in the pictures of a fabric and of a node.

#include "hardware/cluster/cluster.hpp"
#include "models/network/fabric/fabric_graph.hpp"
#include "models/network/fabric/node_graph.hpp"
#include "scenarios/topology/picture.hpp"

namespace orrery::scenarios {

/// Trees are drawn in rows with the nodes at the bottom, a dragonfly's groups on a circle, a torus
/// or mesh as planes side by side. A cluster with more than 12,000 cables is cut to its first
/// nodes, and the caption says how many.
Picture fabric_picture(const hardware::Cluster& cluster);

/// Sockets at the bottom, PCIe switches in the middle, GPUs and NICs at the top, NVLink above them.
Picture node_picture(const hardware::NodeType& node, const std::string& title);

}  // namespace orrery::scenarios
