#pragma once
// Reads the network between nodes from an expanded cluster.

#include "hardware/cluster/cluster.hpp"
#include "sim/input/document.hpp"

namespace orrery::hardware {

struct NodeCounts {
  int nodes = 1;
  int nics = 0;  // per node
};

/// Sets every count that the shape needs. Errors: InputErrors with their pointer.
ClusterFabric read_fabric(const Node& node, NodeCounts counts);

/// Sets the cost constants of messages and collectives over the fabric: those of its latency class,
/// shifted by the difference between the fabric's latency and the class's.
///   net = network + (latency or hop_latency * cables of the longest path) - class_latency
void read_network_constants(const Node& node, Cluster& cluster);

}  // namespace orrery::hardware
