#pragma once
// What the files of the algorithms share: a time as a sum of terms, and the rates available to a
// group inside a node and between nodes. Only models/network/collectives/ includes it. Seconds and
// bytes are doubles here; `finish` converts the sum to picoseconds, rounded up.

#include <optional>
#include <vector>

#include "models/network/collectives/collective.hpp"

namespace orrery::models::collectives {

/// The terms of a time, in seconds.
struct Terms {
  double latency = 0;   // hops and fixed costs
  double ramp = 0;      // protocols and pipelines that are not yet full
  double scale_up = 0;  // bytes over NVLink, xGMI or PCIe
  double network = 0;   // bytes over NICs
  double hidden = 0;    // the shorter of these two if they overlap; hidden, so not in the sum
};

/// One call to price, already checked: at least two ranks and one byte.
struct CostCall {
  Collective collective;
  Bytes size;
  GroupShape group;
  const hardware::Cluster& cluster;
  LinkSharing sharing = LinkSharing::with_siblings;
  TokenCopies copies{};

  double bytes() const { return static_cast<double>(size.count()); }
  double bus_bytes() const { return bytes() * bus_factor(collective, group.ranks); }
  /// Most ranks on a node when the group is spread evenly; hops inside a node are counted by these.
  int ranks_inside() const { return (group.ranks + group.nodes - 1) / group.nodes; }
  const hardware::ProtocolConstants& protocols() const { return cluster.collectives.protocols; }
};

/// The sum in picoseconds, rounded up, and how long it occupies links.
CollectiveTime finish(const CostCall& call, const Terms& terms, std::optional<Protocol> protocol);

/// How many channels NCCL opens by itself, and how many flows these are: channels.cpp.
struct ChannelCount {
  int channels = 0;  // of a group on one node; 0: not known
  int flows = 0;     // CollectiveTime::flows
};
ChannelCount channels_of(const CostCall& call, TrafficPattern pattern);

/// NICs of a node that the group's ranks there use: one per rank, or each rank's part of the node's
/// NICs if that is more.
double nics_used(const CostCall& call);

/// Data-sheet rate of a GPU's scale-up links per direction, R of the cost models; of its PCIe link
/// where it has no others.
double link_rate(const hardware::Cluster& cluster);

/// Share of a GPU's links that lead to the others of a group of `ranks` in its node: 1 with a
/// switch, (ranks - 1) / (gpus - 1) where each link ends at one other GPU (xGMI, NVLink meshes).
/// A hybrid cube mesh doubles some links and lacks others: state group_rates for such a node.
double reach(const hardware::Cluster& cluster, int ranks);

/// Bus bandwidth of a large ring among `ranks` GPUs of one node: the measured rate for the group's
/// size if the cluster has group_rates (of the next larger size if in between), otherwise reach
/// times one rate.
///   default 0.8 R: NCCL's own link speeds, 240 of 300, 371 of 450, 722 of 900 GB/s; ideal links
///   have all of R (ProtocolConstants::scale_up_share)
/// Source  NCCL 2.30, src/graph/topo.h
double ring_rate(const hardware::Cluster& cluster, int ranks);

/// Max-min fair share of a node's NIC bandwidth for one of its sibling groups, in bytes per second:
/// an equal part, but at most the NICs of its own ranks (one per rank, or each rank's part of the
/// node's NICs if that is more). `ring` and `tree` leave a leaf switch once per group, so that
/// oversubscription limits groups with fewer nodes under a leaf than its factor:
///   share = min(node / groups, ranks_per_node * max(nic, node / gpus)) * min(1, m / oversub)
/// m       the group's nodes under one leaf, nodes_per_leaf / node_stride, at least 1. The last
///         factor is 1 where leaves hold whole groups; a chain of messages always crosses leaves
/// With three levels the same factor of pods, whose uplinks have 1 / (oversub * oversub above) of
/// the bandwidth of the NICs under them; the smaller of both counts. The links are those that
/// traffic shares in an evaluation with events, all siblings at once.
/// Leaves out which NIC is near which GPU, and collisions of flows where links would suffice.
/// With LinkSharing::alone, min(node, ranks_per_node * max(nic, node / gpus)).
double network_share(const CostCall& call);

/// As network_share, for traffic between all pairs: (N - m) / (N - 1) of each node's bytes leave
/// the leaf, whose uplinks have 1 / oversub of the bandwidth. Pods likewise.
double network_share_all_pairs(const CostCall& call);

/// Time lost until pipelines and protocols across nodes are full, in seconds:
///   ramp = 1 / (b * rate / V + 1 / (G + g d)),  d = log2(nodes) - 1
/// V       bus bytes
/// rate    the group's share of the NICs; b, G, g: growth, half_size, half_size_growth
/// Source  a fit to public nccl-tests logs of 2 to 1,024 nodes of 8 H100 on NDR InfiniBand
///         (nccl-tests issue 309 and two published figures); g = 88 us there
double ramp_across_nodes(const CostCall& call, double bus_bytes, double rate);

/// Does the NVLink switch reduce (NVLS) for a group with `ranks_inside` ranks on a node?
bool nvls_runs(const hardware::Cluster& cluster, int ranks_inside);

/// Ramp of point-to-point transfers inside a node: 0.15 us * sqrt(bytes / R), with R in bytes per
/// nanosecond and bytes / R in nanoseconds. Fitted: pairwise.cpp.
double pair_ramp(double bytes, const CostCall& call);
/// Efficiency of point-to-point transfers across nodes: 0.80 of that of an all-reduce. Of 50 GB/s
/// per GPU all-to-alls had 37 (H100) and 36.8 (B200, tuned), a message 35.8 (the same B200 nodes)
/// to 45, where an all-reduce has 46. Untuned fabrics were seen at 20 to 48.
double pair_efficiency(const CostCall& call);

// The cost models, one file each, for the table in builtins.cpp. Empty where one cannot run.
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
