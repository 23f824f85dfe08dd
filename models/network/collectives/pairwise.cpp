// All-to-all: each rank sends a different shard to every other, directly.

#include <algorithm>
#include <cmath>

#include "models/network/collectives/terms.hpp"

namespace orrery::models::collectives {

double pair_ramp(double bytes, const CostCall& call) {
  return call.protocols().pair_root * std::sqrt(bytes / (link_rate(call.cluster) / 1e9));
}

double pair_efficiency(const CostCall& call) {
  return call.protocols().pair_efficiency * call.cluster.fabric.efficiency;
}

/// Inside a node, V = size (n-1)/n bus bytes:
///   t = a + 2.8 us + 0.15 us * sqrt(V / R in ns) + V / (1.05 ring) + size / n / 2.4 R
/// Across N nodes of p ranks, with leaving = p size (n-p)/n bytes out of each node:
///   t = a + 2.8 us + h (n-1) + net + max(leaving / (0.8 efficiency * share), inside)
/// inside  V / (1.05 ring); share: network_share_all_pairs of the group on one node
/// Source  least |log error| over 532 rows of public runs on A100, Hopper and Blackwell nodes of
///         2, 4 and 8 GPUs (NVIDIA aiconfigurator's tables): 7.5 % median; repeats differ as much;
///         hops per peer: 37-38 us at 16 GPUs on B200 and MI355X logs
std::vector<CollectiveTime> pairwise(const CostCall& call) {
  const auto& protocols = call.protocols();
  const auto& constants = call.cluster.collectives;
  const int n = call.group.ranks;
  const double v = call.bus_bytes();
  Terms terms;
  terms.latency = seconds(constants.base) + seconds(protocols.pair_base);
  const int inside = call.ranks_inside();
  const double on_links =
      inside > 1 ? v / (protocols.pairs_ring_share * ring_rate(call.cluster, inside)) : 0;
  if (call.group.nodes == 1) {
    terms.ramp = pair_ramp(v, call);
    const bool pcie = call.cluster.node.scale_up == hardware::ScaleUp::pcie;
    const double own = call.bytes() / n / (protocols.pairs_own_rate * link_rate(call.cluster));
    terms.scale_up = on_links + (pcie ? 0 : own);
    return {finish(call, terms, std::nullopt)};
  }
  terms.latency += seconds(constants.step) * (n - 1) + seconds(constants.network);
  const double leaving = inside * call.bytes() * (n - inside) / n;
  const double on_wire = leaving / (pair_efficiency(call) * network_share_all_pairs(call));
  (on_links > on_wire ? terms.scale_up : terms.network) = std::max(on_links, on_wire);
  terms.hidden = std::min(on_links, on_wire);
  return {finish(call, terms, std::nullopt)};
}

}  // namespace orrery::models::collectives
