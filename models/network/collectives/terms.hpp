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
  LinkSharing sharing = LinkSharing::with_siblings;
  int copies = 0;  // of a token among an all-to-all's rows; 0: no two rows are alike

  double bytes() const { return static_cast<double>(size.count()); }
  double bus_bytes() const { return bytes() * bus_factor(collective, group.ranks); }
  /// Ranks on the group's fullest node when spread evenly: hops inside a node count these.
  int ranks_inside() const { return (group.ranks + group.nodes - 1) / group.nodes; }
  const hardware::ProtocolConstants& protocols() const { return cluster.collectives.protocols; }
};

/// The sum in picoseconds, rounded up, and what of it is on which links.
CollectiveTime finish(const CostCall& call, const Terms& terms, std::optional<Protocol> protocol);

/// How many channels NCCL opens by itself, and flows: channels.cpp. At most `limit` where given.
struct ChannelCount {
  int channels = 0;  // of a group on one node; 0: not known
  int flows = 0;     // CollectiveTime::flows
};
ChannelCount channels_of(const CostCall& call, TrafficPattern pattern);

/// NICs of a node that the group's ranks there use: one each, or a rank's part of the node's NICs
/// if these are more.
double nics_used(const CostCall& call);

/// Link rate of the data sheet, per GPU and direction: R of the cost model. The PCIe link without
/// others.
double link_rate(const hardware::Cluster& cluster);

/// Part of a GPU's links that lead to the others of a group of `ranks` in its node: all behind a
/// switch, (ranks - 1) / (gpus - 1) where each link ends at one other GPU (xGMI, NVLink meshes).
/// A hybrid cube mesh doubles some links and lacks others: give such a node its group_rates.
double reach(const hardware::Cluster& cluster, int ranks);

/// Bus bandwidth of a large ring among `ranks` GPUs of one node. The measured rate of the group's
/// size where it depends on it (the next larger size between two), else reach * one rate.
///   default 0.8 R: NCCL's own link speeds, 240 of 300, 371 of 450, 722 of 900 GB/s; an ideal one
///   has all of R (ProtocolConstants::scale_up_share)
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
/// Without siblings, min(node, ranks_per_node * max(nic, node / gpus)) where the call is alone.
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

/// What pairs inside a node take to fill: 0.15 us * sqrt(bytes / R), with R in bytes per nanosecond
/// and bytes / R in nanoseconds. Fitted: pairwise.cpp.
double pair_ramp(double bytes, const CostCall& call);
/// Rate of pairs across nodes next to the network's efficiency in an all-reduce, 0.80: of 50 GB/s
/// per GPU all-to-alls had 37 (H100) and 36.8 (B200, tuned), a message 35.8 (the same B200 nodes)
/// to 45, where an all-reduce has 46. Untuned fabrics were seen at 20 to 48.
double pair_efficiency(const CostCall& call);

// One file each, for the table in builtins.cpp. Empty where an algorithm does not run.
std::vector<CollectiveTime> ring(const CostCall& call);
std::vector<CollectiveTime> tree(const CostCall& call);
std::vector<CollectiveTime> nvls_tree(const CostCall& call);
std::vector<CollectiveTime> nvls(const CostCall& call);
std::vector<CollectiveTime> pairwise(const CostCall& call);
std::vector<CollectiveTime> direct(const CostCall& call);
std::vector<CollectiveTime> rooted(const CostCall& call);
std::vector<CollectiveTime> collnet(const CostCall& call);
std::vector<CollectiveTime> pat(const CostCall& call);
std::vector<CollectiveTime> hierarchical(const CostCall& call);
std::vector<CollectiveTime> hierarchical_all_to_all(const CostCall& call);
std::vector<CollectiveTime> deduplicating(const CostCall& call);

}  // namespace orrery::models::collectives
