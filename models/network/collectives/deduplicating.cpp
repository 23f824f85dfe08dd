// All-to-all of experts that sends a token once to each node that has any of its experts, and from
// there over NVLink to each of these: the dispatch of DeepEP and HybridEP, and their combine, which
// reduces along the same paths in reverse.

#include <algorithm>
#include <cmath>

#include "models/network/collectives/terms.hpp"

namespace orrery::models::collectives {

namespace {

/// Share of a NIC's rate that is reached.
/// Source  deepseek-ai/DeepEP, README: 43 GB/s of 50 between two nodes, "normal kernels with NVLink
///         and RDMA forwarding" (more nodes are listed with what NVLink moves: 51 to 58)
constexpr double wire_share = 0.86;

}  // namespace

/// n ranks on N nodes, p = n/N on each, k copies of each token among the rows:
///   t = 2 (a + 2.8 us) + h (p-1 + N-1) + net
///       + max(size / k p (N-1) (1 - (1 - 1/N)^k) / (0.86 share), V / (1.05 ring))
/// V       size (n-1)/n, the bytes that a GPU forwards over NVLink
/// Source  Zhao et al. 2025, "Insights into DeepSeek-V3", arXiv 2505.09343, section 4.3: with
///         experts drawn uniformly, a node has none of a token's k with probability (1 - 1/N)^k
std::vector<CollectiveTime> deduplicating(const CostCall& call) {
  const int nodes = call.group.nodes, inside = call.ranks_inside();
  if (nodes == 1) return {};
  const auto& constants = call.cluster.collectives;
  const auto& protocols = call.protocols();
  const double k = std::max(1, call.copies);
  const double reached = (nodes - 1) * (1 - std::pow(1 - 1.0 / nodes, k));
  const double on_wire =
      inside * call.bytes() / k * reached / (wire_share * network_share_all_pairs(call));
  const double on_links =
      inside > 1 ? call.bus_bytes() / (protocols.pairs_ring_share * ring_rate(call.cluster, inside))
                 : 0;
  Terms terms;
  terms.latency = 2 * (seconds(constants.base) + seconds(protocols.pair_base)) +
                  seconds(constants.step) * (inside - 1 + nodes - 1) + seconds(constants.network);
  (on_links > on_wire ? terms.scale_up : terms.network) = std::max(on_links, on_wire);
  terms.hidden = std::min(on_links, on_wire);
  return {finish(call, terms, std::nullopt)};
}

}  // namespace orrery::models::collectives
