// All-to-all: each rank sends a different shard to every other, directly.

#include <algorithm>
#include <cmath>

#include "models/network/collectives/terms.hpp"

namespace orrery::models::collectives {
namespace {

/// Source  least |log error| over 532 rows of public runs on A100, Hopper and Blackwell nodes of
///         2, 4 and 8 GPUs (NVIDIA aiconfigurator's tables): 7.5 % median; repeats differ as much
constexpr double pairwise_ring_share = 1.05;  // of the ring's rate, on bus bytes
constexpr double pairwise_own_rate = 2.4;     // of the link rate

}  // namespace

double pairwise_ramp(double bytes, const hardware::Cluster& cluster) {
  return 0.15e-6 * std::sqrt(bytes / (link_rate(cluster) / 1e9));
}

/// Inside a node, V = size (n-1)/n bus bytes:
///   t = a + 2.8 us + 0.15 us * sqrt(V / R in ns) + V / (1.05 ring) + size / n / 2.4 R
/// Across N nodes of p ranks the bytes that leave a node count, p size (n-p)/n of them:
///   t = a + 2.8 us + h (n-1) + net + max(leaving / (0.8 efficiency * share), inside)
/// inside  V / (1.05 ring); share: network_share_all_pairs of the group on one node
/// Source  above; hops per peer: 37-38 us at 16 GPUs on B200 and MI355X logs
CollectiveTime all_to_all(const CostCall& call) {
  const auto& constants = call.cluster.collectives;
  const int n = call.group.ranks;
  const double v = call.bus_bytes();
  Terms terms;
  terms.latency = seconds(constants.base) + pairwise_base;
  const int inside = call.ranks_inside();
  const double on_links =
      inside > 1 ? v / (pairwise_ring_share * ring_rate(call.cluster, inside)) : 0;
  if (call.group.nodes == 1) {
    terms.ramp = pairwise_ramp(v, call.cluster);
    const bool pcie = call.cluster.node.scale_up == hardware::ScaleUp::pcie;
    const double own = call.bytes() / n / (pairwise_own_rate * link_rate(call.cluster));
    terms.scale_up = on_links + (pcie ? 0 : own);
    return finish(terms, Algorithm::direct, std::nullopt);
  }
  terms.latency += seconds(constants.step) * (n - 1) + seconds(constants.network);
  const double leaving = inside * call.bytes() * (n - inside) / n;
  const double on_wire = leaving / (pairwise_efficiency * call.cluster.fabric.efficiency *
                                    network_share_all_pairs(call));
  (on_links > on_wire ? terms.scale_up : terms.network) = std::max(on_links, on_wire);
  terms.beneath = std::min(on_links, on_wire);
  return finish(terms, Algorithm::direct, std::nullopt);
}

}  // namespace orrery::models::collectives
