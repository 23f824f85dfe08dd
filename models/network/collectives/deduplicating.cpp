// All-to-all of experts that sends a token once to each node that has any of its experts, and from
// there over NVLink to each of these: the dispatch of DeepEP and HybridEP, and their combine, which
// reduces along the same paths in reverse.

#include <algorithm>
#include <cmath>

#include "hardware/gpu/kernel_rates.hpp"
#include "models/network/collectives/terms.hpp"

namespace orrery::models::collectives {

namespace {

/// Chance that exactly `of_node` of a node's `here` groups are among the `kept` of all `groups`.
double chance_of_kept(std::int64_t of_node, std::int64_t here, const TokenCopies& copies) {
  const auto ln_choose = [](std::int64_t n, std::int64_t k) {
    return std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0);
  };
  const std::int64_t elsewhere = copies.groups - here, others = copies.kept - of_node;
  if (others < 0 || others > elsewhere) return 0;
  return std::exp(ln_choose(here, of_node) + ln_choose(elsewhere, others) -
                  ln_choose(copies.groups, copies.kept));
}

/// Chance that a node of `here` whole groups has any of a token's k experts.
double chance_with_groups(std::int64_t here, double k, const TokenCopies& copies) {
  double chance = 0;
  for (std::int64_t of_node = 1; of_node <= std::min(here, copies.kept); ++of_node) {
    const double missed =
        std::pow(1 - static_cast<double>(of_node) / static_cast<double>(copies.kept), k);
    chance += chance_of_kept(of_node, here, copies) * (1 - missed);
  }
  return chance;
}

/// Chance that a node has any of a token's experts. With G groups on N nodes, each group has N/G
/// nodes, or each node G/N groups; if that is no whole number, some nodes have one group more.
double chance_of_node(int nodes, const TokenCopies& copies) {
  const double k = static_cast<double>(std::max<std::int64_t>(1, copies.each));
  const std::int64_t here = copies.groups / nodes, rest = copies.groups % nodes;
  if (here == 0) {
    const double kept_nodes = std::max(
        1.0, static_cast<double>(copies.kept) * nodes / static_cast<double>(copies.groups));
    return kept_nodes / nodes * (1 - std::pow(1 - 1 / kept_nodes, k));
  }
  const double fewer = chance_with_groups(here, k, copies);
  if (rest == 0) return fewer;
  const double share = static_cast<double>(rest) / nodes;
  return fewer + share * (chance_with_groups(here + 1, k, copies) - fewer);
}

}  // namespace

/// n ranks on N nodes, p = n/N on each, k copies of each token among the rows:
///   t = 2 (a + 2.8 us) + h (p-1 + N-1) + net
///       + max(size / k p (N-1) P / (0.86 share), V / (1.05 ring))
/// P       chance that a node has any of a token's experts: with experts drawn uniformly,
///         1 - (1 - 1/N)^k; fewer where a token's experts are limited to some groups of experts
/// V       size (n-1)/n, the bytes that a GPU forwards over NVLink
/// Source  Zhao et al. 2025, "Insights into DeepSeek-V3", arXiv 2505.09343, section 4.3; groups:
///         DeepSeek-AI 2024, "DeepSeek-V3 technical report", arXiv 2412.19437, section 2.1.2
std::vector<CollectiveTime> deduplicating(const CostCall& call) {
  const int nodes = call.group.nodes, inside = call.ranks_inside();
  if (nodes == 1) return {};
  const auto& constants = call.cluster.collectives;
  const auto& protocols = call.protocols();
  const double k = static_cast<double>(std::max<std::int64_t>(1, call.copies.each));
  const double reached = (nodes - 1) * chance_of_node(nodes, call.copies);
  const double wire_share =
      hardware::kernel_rate("deduplicated", "", call.cluster.gpu()).share;  // of a NIC's rate
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
