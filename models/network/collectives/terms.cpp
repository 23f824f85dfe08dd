#include "models/network/collectives/terms.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sim/errors.hpp"

namespace orrery::models::collectives {
namespace {

double nics_share(const CostCall& call) {
  const auto& cluster = call.cluster;
  const double node = cluster.node_bandwidth().count();
  ensure(node > 0, "a group spans nodes but the cluster has no network");
  const double rank = std::max(cluster.nic_bandwidth().count(), node / cluster.node.gpus);
  const int groups = call.sharing == LinkSharing::alone ? 1 : call.group.groups_per_node;
  return std::min(node / groups, std::min(node, call.group.ranks_per_node * rank));
}

/// A level of switches whose links up are fewer than its links down.
struct NarrowLevel {
  int nodes = 0;      // under one leaf, or under the spines of one pod
  double narrow = 1;  // bandwidth of these nodes' NICs over that of the links up
};

/// Leaves, and with three levels pods, whose uplinks the leaves' oversubscription narrows, too.
std::array<NarrowLevel, 2> narrow_levels(const hardware::Cluster& cluster) {
  const hardware::ClusterFabric& fabric = cluster.fabric;
  const NarrowLevel leaves{fabric.nodes_per_leaf, fabric.oversubscription};
  const bool pods = hardware::is_tree(fabric.kind) && fabric.tree.levels == 3;
  if (!pods) return {leaves, {std::numeric_limits<int>::max(), 1}};
  const int rails = hardware::has_rails(fabric.kind) ? std::max(1, cluster.node.nics) : 1;
  return {leaves,
          {fabric.nodes_per_leaf * std::max(1, fabric.tree.leaves_per_pod / rails),
           fabric.oversubscription * fabric.tree.oversubscription_above}};
}

/// The group's nodes under one switch of a level; nothing if no group of its axis spans several
/// (one has all nodes, or each holds whole groups). A message is one pair of a longer chain, so it
/// may leave a switch even where its group fits under one.
std::optional<double> nodes_under(const NarrowLevel& level, const CostCall& call) {
  if (call.sharing == LinkSharing::alone) return std::nullopt;
  const auto& group = call.group;
  const int span = (group.nodes - 1) * group.node_stride + 1;
  const bool whole_groups = call.collective != Collective::send_receive &&
                            level.nodes % (group.nodes * group.node_stride) == 0;
  if (std::max(call.cluster.nodes, span) <= level.nodes || whole_groups) return std::nullopt;
  return std::max(1.0, static_cast<double>(level.nodes) / group.node_stride);
}

}  // namespace

double nics_used(const CostCall& call) {
  const auto& node = call.cluster.node;
  const double per_rank = std::max(1.0, static_cast<double>(node.nics) / node.gpus);
  return std::min<double>(node.nics, call.group.ranks_per_node * per_rank);
}

CollectiveTime finish(const CostCall& call, const Terms& terms, std::optional<Protocol> protocol) {
  const double total = terms.latency + terms.ramp + terms.scale_up + terms.network;
  CollectiveTime result{.protocol = protocol, .limited_by = "latency"};
  result.time = nearest_count<Time>(std::ceil(total * 1e12));
  result.fluid = std::min(result.time, from_seconds(terms.scale_up + terms.network));
  result.latency = result.time - result.fluid;
  const bool on_wire = terms.network > terms.scale_up;
  result.links = {.nic = from_seconds(on_wire ? terms.network : terms.hidden),
                  .nvlink = from_seconds(on_wire ? terms.hidden : terms.scale_up)};
  if (result.links.nic > Time{}) {
    const double part = std::min(1.0, ratio(result.links.nic, result.fluid));
    result.wire = Bandwidth{part * nics_share(call) / nics_used(call)};
  }
  double largest = terms.latency;
  const auto consider = [&](double term, std::string_view reason) {
    if (term <= largest) return;
    largest = term;
    result.limited_by = reason;
  };
  consider(terms.ramp, "ramp");
  consider(terms.scale_up, "scale-up");
  consider(terms.network, "network");
  return result;
}

double link_rate(const hardware::Cluster& cluster) {
  const double scale_up = cluster.node.scale_up_bandwidth.count();
  const double rate = scale_up > 0 ? scale_up : cluster.gpu().host_link.count();
  ensure(rate > 0, "a group has several ranks on a node whose GPUs have no link");
  return rate;
}

double reach(const hardware::Cluster& cluster, int ranks) {
  using hardware::ScaleUp;
  const auto& node = cluster.node;
  const bool mesh = node.scale_up == ScaleUp::mesh || node.scale_up == ScaleUp::xgmi;
  return mesh && node.gpus > 1 ? (ranks - 1.0) / (node.gpus - 1.0) : 1.0;
}

double ring_rate(const hardware::Cluster& cluster, int ranks) {
  for (const auto& rate : cluster.collectives.group_rates) {
    if (rate.ranks >= ranks) return rate.ring.count();
  }
  if (!cluster.collectives.group_rates.empty()) {
    return cluster.collectives.group_rates.back().ring.count();
  }
  const double given = cluster.collectives.ring_rate.count();
  return reach(cluster, ranks) *
         (given > 0 ? given : cluster.collectives.protocols.scale_up_share * link_rate(cluster));
}

double network_share(const CostCall& call) {
  double share = 1;
  for (const NarrowLevel& level : narrow_levels(call.cluster)) {
    const auto nodes = nodes_under(level, call);
    if (nodes) share = std::min(share, *nodes / level.narrow);
  }
  return nics_share(call) * share;
}

double network_share_all_pairs(const CostCall& call) {
  double share = 1;
  for (const NarrowLevel& level : narrow_levels(call.cluster)) {
    const auto nodes = nodes_under(level, call);
    if (!nodes || *nodes >= call.group.nodes) continue;
    const double leaving = (call.group.nodes - *nodes) / (call.group.nodes - 1);
    share = std::min(share, 1 / (level.narrow * leaving));
  }
  return nics_share(call) * share;
}

double ramp_across_nodes(const CostCall& call, double bus_bytes, double rate) {
  const auto& constants = call.cluster.collectives;
  const double doublings = std::log2(static_cast<double>(call.group.nodes)) - 1;
  const double full =
      seconds(constants.half_size) + seconds(constants.half_size_growth) * doublings;
  const double empty = bus_bytes / (constants.growth * rate);
  return full > 0 && constants.growth > 0 ? 1 / (1 / empty + 1 / full) : 0;
}

}  // namespace orrery::models::collectives
