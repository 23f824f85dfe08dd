#pragma once
// What the algorithms' files share: a time as a sum of terms, the rates that a group finds inside
// a node and between nodes. Only models/network/collectives/ includes it. Seconds and bytes are
// doubles here; `finish` turns the sum into picoseconds, rounded up.

#include <optional>
#include <vector>

#include "models/network/collectives/collective.hpp"

namespace orrery::models::collectives {

struct Terms {
  double latency = 0;   // hops and fixed costs
  double ramp = 0;      // protocols and pipelines that are not yet full
  double scale_up = 0;  // bytes over NVLink, xGMI or PCIe
  double network = 0;   // bytes over NICs
  double beneath = 0;   // of the two the faster one's, where both move at once: not in the sum
};

/// One call to price, checked: at least two ranks and one byte.
struct CostCall {
  Collective collective;
  Bytes size;
  GroupShape group;
  const hardware::Cluster& cluster;

  double bytes() const { return static_cast<double>(size.count()); }
  double bus_bytes() const { return bytes() * bus_factor(collective, group.ranks); }
  /// Ranks on the group's fullest node when spread evenly: hops inside a node count these.
  int ranks_inside() const { return (group.ranks + group.nodes - 1) / group.nodes; }
};

CollectiveTime finish(const Terms& terms, Algorithm algorithm, std::optional<Protocol> protocol);

/// Link rate of the data sheet, per GPU and direction: R of the cost model. The PCIe link without
/// others.
double link_rate(const hardware::Cluster& cluster);

/// Part of a GPU's links that lead to the others of a group of `ranks` in its node: all behind a
/// switch, (ranks - 1) / (gpus - 1) where each link ends at one other GPU (xGMI, NVLink meshes).
/// A hybrid cube mesh doubles some links and lacks others: give such a node its group_rates.
double reach(const hardware::Cluster& cluster, int ranks);

/// Bus bandwidth of a large ring among `ranks` GPUs of one node. The measured rate of the group's
/// size where it depends on it (the next larger size between two), else reach * one rate.
///   default 0.8 R: NCCL's own link speeds, 240 of 300, 371 of 450, 722 of 900 GB/s
/// Source  NCCL 2.30, src/graph/topo.h
double ring_rate(const hardware::Cluster& cluster, int ranks);

/// What one of a node's sibling groups gets of its NICs, max-min, in bytes per second: an equal
/// part, but at most the NICs of its own ranks (one each, or a rank's part of the node's NICs if
/// these are more). `ring` and `tree` cross the border of a leaf switch once per group, so that
/// oversubscription is felt by groups with fewer nodes under a leaf than its factor:
///   share = min(node / groups, ranks_per_node * max(nic, node / gpus)) * min(1, m / oversub)
/// m       the group's nodes under one leaf, nodes_per_leaf / node_stride, at least 1. The last
///         factor falls away where leaves hold whole groups; a chain of messages always crosses
/// Leaves out which NIC is near which GPU, and flows that collide although the links suffice.
double network_share(const CostCall& call);

/// As network_share for traffic between all pairs: of each node's bytes (N - m) / (N - 1) leave
/// the leaf, and its uplinks carry 1 / oversub of them.
double network_share_all_pairs(const CostCall& call);

/// What pipelines and protocols across nodes cost until they are full, in seconds:
///   ramp = 1 / (b * rate / V + 1 / (G + g d)),  d = log2(nodes) - 1
/// V       bus bytes
/// rate    the group's share of the NICs; b, G, g: growth, half_size, half_size_growth
/// Source  a fit to public nccl-tests logs of 2 to 1,024 nodes of 8 H100 on NDR InfiniBand
///         (nccl-tests issue 309 and two published figures); g = 88 us there
double ramp_across_nodes(const CostCall& call, double bus_bytes, double rate);

/// Whether the switch reduces for a group with so many ranks in a node.
bool nvls_runs(const hardware::Cluster& cluster, int ranks_inside);

/// What a send/receive call costs beyond a ring's base, and what an all-to-all between two GPUs of
/// a node takes to fill: 0.15 us * sqrt(bytes / R), with R in bytes per nanosecond and bytes / R
/// in nanoseconds. Fitted: all_to_all.cpp.
constexpr double pairwise_base = 2.8e-6;
double pairwise_ramp(double bytes, const hardware::Cluster& cluster);
/// Rate of an all-to-all across nodes next to the network's efficiency in an all-reduce: of 50 GB/s
/// per GPU all-to-alls had 37 (H100) and 36.8 (B200, tuned), a message 35.8 (the same B200 nodes)
/// to 45, where an all-reduce has 46. Untuned fabrics were seen at 20 to 48.
constexpr double pairwise_efficiency = 0.80;

// One file each. A function returns nothing where its algorithm does not run.
std::vector<CollectiveTime> ring_in_node(const CostCall& call);  // ring.cpp
CollectiveTime ring_across_nodes(const CostCall& call);          // ring.cpp
CollectiveTime tree_across_nodes(const CostCall& call);          // tree.cpp
std::optional<CollectiveTime> nvls(const CostCall& call);        // nvls.cpp
CollectiveTime all_to_all(const CostCall& call);                 // all_to_all.cpp
CollectiveTime point_to_point(const CostCall& call);             // point_to_point.cpp

}  // namespace orrery::models::collectives
