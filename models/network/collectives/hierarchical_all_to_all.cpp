// Two-level all-to-all: inside every node, the data for ranks of one local index (on any node) is
// gathered on the rank of that index, which then sends one message to each node.

#include "models/network/collectives/terms.hpp"

namespace orrery::models::collectives {

/// n ranks on N nodes, p = n/N on each:
///   t = 2 (a + 2.8 us) + h (p-1 + N-1) + net + 0.15 us sqrt(V / R in ns) + V / (1.05 ring)
///       + size (N-1)/N p / (0.8 efficiency * share),  V = size (p-1)/p
/// Fewer and larger messages than pairwise (n-1 hops), but every byte crosses NVLink, too.
/// share   network_share_all_pairs of the group on one node
/// Source  Hwang et al. 2022, "Tutel: adaptive mixture-of-experts at scale", arXiv 2206.03382
///         (2DH all-to-all); constants as pairwise.cpp
std::vector<CollectiveTime> hierarchical_all_to_all(const CostCall& call) {
  const int nodes = call.group.nodes, inside = call.ranks_inside();
  if (nodes == 1 || inside == 1) return {};
  const auto& constants = call.cluster.collectives;
  const auto& protocols = call.protocols();
  const double v = call.bytes() * (inside - 1) / inside;
  Terms terms;
  terms.latency = 2 * (seconds(constants.base) + seconds(protocols.pair_base)) +
                  seconds(constants.step) * (inside - 1 + nodes - 1) + seconds(constants.network);
  terms.ramp = pair_ramp(v, call);
  terms.scale_up = v / (protocols.pairs_ring_share * ring_rate(call.cluster, inside));
  terms.network = inside * call.bytes() * (nodes - 1) / nodes /
                  (pair_efficiency(call) * network_share_all_pairs(call));
  return {finish(call, terms, std::nullopt)};
}

}  // namespace orrery::models::collectives
