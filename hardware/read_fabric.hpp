#pragma once
// How the network between nodes is read from an expanded cluster.

#include "hardware/cluster.hpp"
#include "sim/input/document.hpp"

namespace orrery::hardware {

struct NodeCounts {
  int nodes = 1;
  int nics = 0;  // of each
};

/// Every count that the shape needs is there afterwards. Errors: InputErrors with their pointer.
ClusterFabric read_fabric(const Node& node, NodeCounts counts);

/// What messages and collectives over the fabric cost: a class's constants, moved by what the
/// latency differs from the class's own.
///   net = network + (latency or hop_latency * cables of the longest path) - class_latency
void read_network_constants(const Node& node, Cluster& cluster);

}  // namespace orrery::hardware
