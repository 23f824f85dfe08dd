#pragma once
// `orrery show topology`: switches by level, cables, bisection, how far apart ranks are, and the
// names of links that perturbations take.

#include <string>

#include "hardware/cluster/cluster.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// {cluster, nodes, gpus_per_node, nics_per_node, nic_bandwidth_bytes_per_s, fabric, node};
/// `fabric` is null without a network: {kind, routing, pxn, switches[{kind, count, first, last,
/// ports, most_ports_used}], cables[{from, to, count, pairs, bytes_per_s}] as bought (bill.hpp),
/// note, bisection_bytes_per_s, half_of_nics_bytes_per_s,
/// paths[{cables, latency_s, nodes, from, to}] from the first NIC to the same NIC of all other
/// nodes, links, link_names[], null above 20,000}; `node` as `node_facts`.
Json topology_facts(const hardware::Cluster& cluster);

/// {gpus, nics, stated, gpu_nics[[..]], cables[{from, to, bytes_per_s}], paths[{from, to, way[]}]}
Json node_facts(const hardware::NodeType& node);

/// The routing in words; a torus or mesh has only dimension-order routing.
std::string routing_text(const hardware::ClusterFabric& fabric);

/// The facts of a cluster or of a node as text.
std::string topology_text(const Json& facts, bool colour);
std::string node_text(const Json& facts, bool colour);

}  // namespace orrery::scenarios
