// Gather and scatter: one root receives a shard from each of the others, or sends one to each.

#include <algorithm>

#include "models/network/collectives/terms.hpp"

namespace orrery::models::collectives {

/// n ranks on N nodes, p = n/N on each. `size` is that of all shards, of which (n-p)/n cross the
/// root's NIC and (p-1)/n its links inside the node:
///   t = a + 2.8 us + h (n-1) + net + max(size (n-p)/n / (0.8 efficiency * share),
///                                        size (p-1)/n / (1.05 ring))
/// net     across nodes only
/// share   network_share of a group with one rank on the root's node
/// Source  both are built of sends and receives (nccl-tests, src/gather.cu, src/scatter.cu), so the
///         constants are those of pairs, pairwise.cpp
std::vector<CollectiveTime> rooted(const CostCall& call) {
  const auto& constants = call.cluster.collectives;
  const auto& protocols = call.protocols();
  const double n = call.group.ranks, inside = call.ranks_inside();
  Terms terms;
  terms.latency =
      seconds(constants.base) + seconds(protocols.pair_base) + seconds(constants.step) * (n - 1);
  double on_links = 0, on_wire = 0;
  if (inside > 1) {
    on_links = call.bytes() * (inside - 1) / n /
               (protocols.pairs_ring_share * ring_rate(call.cluster, call.ranks_inside()));
  }
  if (call.group.nodes > 1) {
    CostCall root = call;
    root.group.ranks_per_node = 1;
    terms.latency += seconds(constants.network);
    on_wire = call.bytes() * (n - inside) / n / (pair_efficiency(call) * network_share(root));
  }
  (on_links > on_wire ? terms.scale_up : terms.network) = std::max(on_links, on_wire);
  terms.hidden = std::min(on_links, on_wire);
  return {finish(call, terms, std::nullopt)};
}

}  // namespace orrery::models::collectives
