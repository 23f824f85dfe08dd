#pragma once
// Where things stand in the pictures of a fabric and of a node.

#include "hardware/cluster.hpp"
#include "models/network/fabric/fabric_graph.hpp"
#include "models/network/fabric/node_graph.hpp"
#include "scenarios/topology/picture.hpp"

namespace orrery::scenarios {

/// Trees in rows, nodes below; a dragonfly's groups on a circle; a torus or mesh as planes side by
/// side. More than 12,000 cables are not drawn: of such a cluster its first nodes alone, and the
/// caption says how many.
Picture fabric_picture(const hardware::Cluster& cluster);

/// Sockets below, PCIe switches in between, GPUs and NICs above, NVLink over them.
Picture node_picture(const hardware::NodeType& node, const std::string& title);

}  // namespace orrery::scenarios
