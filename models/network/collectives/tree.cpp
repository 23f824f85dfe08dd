// Double binary tree across nodes with a chain inside each: NCCL's all-reduce over a network.

#include <algorithm>
#include <cmath>

#include "models/network/collectives/terms.hpp"

namespace orrery::models::collectives {
namespace {

/// Bus bandwidth inside a node where the NVLink switch reduces, never below the ring's. The
/// switch's rate counts `size`; the bus factor V / size converts it to bus bytes.
double rate_of_switch(const CostCall& call) {
  const double ring = ring_rate(call.cluster, call.ranks_inside());
  const double per_size = bus_factor(call.collective, call.group.ranks);
  return std::max(ring, per_size * call.cluster.collectives.switch_rate.count());
}

/// All-reduce of n ranks on N nodes, p = n/N on each (NVLSTree where the switch reduces):
///   t = a + 2 h (p-1) + net log2(N) + ramp(V) + max(V, or size if N = 2) / (efficiency * share)
/// and the last term not below V / (0.9 rate inside the node). On two nodes the data crosses once
/// each way, not twice as on a ring or a deeper tree: 1.3 to 1.8 times the NICs' bus bandwidth.
/// rate    of a ring inside a node, or of the NVLink switch
/// share   network_share: the NIC rate that siblings leave; a, h, net: the cluster's constants
/// 0.9     share of its stand-alone rate that the intra-node part reaches while it feeds the
///         network: 467-487 of 514 GB/s on 2 x 8 H100, 811 of 953 on two racks of GB200, 194 of 240
///         on 2 x 8 A100 (public two-node logs, nccl-tests issue 309 and others)
/// Source  Sanders, Speck, Traeff 2009, "Two-tree algorithms for full bandwidth broadcast,
///         reduction and scan"; latency as NCCL's tuner composes it; public logs of 8 x H100, B200
///         on 2 to 1,024 nodes: 0.92 (0.80-0.98) of the NICs from three nodes on
CollectiveTime tree_across_nodes(const CostCall& call, double rate_inside) {
  const auto& constants = call.cluster.collectives;
  const int nodes = call.group.nodes;
  const int inside = call.ranks_inside();
  const double v = call.bus_bytes();
  const double nics = network_share(call);
  const double crossing = nodes == 2 ? call.bytes() : v;
  const double on_wire = crossing / (call.cluster.fabric.efficiency * nics);
  const double on_links = inside > 1 ? v / (call.protocols().tree_scale_up * rate_inside) : 0;

  Terms terms;
  terms.latency = seconds(constants.base) + 2 * seconds(constants.step) * (inside - 1) +
                  seconds(constants.network) * std::log2(static_cast<double>(nodes));
  terms.ramp = ramp_across_nodes(call, v, nics);
  (on_links > on_wire ? terms.scale_up : terms.network) = std::max(on_links, on_wire);
  terms.hidden = std::min(on_links, on_wire);
  return finish(call, terms, std::nullopt);
}

/// All-reduce of n ranks inside one node along a chain and back: NCCL's tree on one node, which
/// runs only if a user or the tuner chooses it. As the ring of the same protocol, except for its
/// bytes:
///   t = latency(ring) + fluid(ring) * n / (n-1) / 0.92
/// since ranks inside the chain send the whole buffer up and down, those of a ring (n-1)/n of it
/// twice.
/// Source  NCCL 2.30.7, src/graph/tuning.cc: 0.92 of the ring's links; not measured
std::vector<CollectiveTime> chain_in_node(const CostCall& call) {
  constexpr double of_ring = 0.92;
  const double n = call.group.ranks;
  std::vector<CollectiveTime> times = ring(call);
  for (CollectiveTime& one : times) {
    one.fluid = scaled(one.fluid, n / (n - 1) / of_ring);
    one.time = one.latency + one.fluid;
    one.links.nvlink = std::min(one.time, scaled(one.links.nvlink, n / (n - 1)));
  }
  return times;
}

}  // namespace

std::vector<CollectiveTime> tree(const CostCall& call) {
  if (call.group.nodes == 1) return chain_in_node(call);
  return {tree_across_nodes(call, ring_rate(call.cluster, call.ranks_inside()))};
}

std::vector<CollectiveTime> nvls_tree(const CostCall& call) {
  if (call.group.nodes == 1 || !nvls_runs(call.cluster, call.ranks_inside())) return {};
  return {tree_across_nodes(call, rate_of_switch(call))};
}

}  // namespace orrery::models::collectives
