// Two-level collectives: one level inside every node, the other across nodes between the ranks of
// the same local index, each over a NIC of its own. The levels run one after the other.

#include "models/network/collectives/terms.hpp"

namespace orrery::models::collectives {

/// n ranks on N nodes, p = n/N on each. An all-reduce is a reduce-scatter inside, p rings across
/// and an all-gather inside, r = 2; an all-gather or a reduce-scatter is one inside and p rings
/// across, r = 1:
///   t = (r + 1) a + r h (p-1) + r net (N-1) + ramp + r (p-1)/p size / (0.976 ring)
///       + r (N-1)/N size / (efficiency * share)
/// efficiency, ramp   as the ring's; share: network_share
/// The two levels do not overlap; if pieces were pipelined through both, the time would approach a
/// ring's.
/// Source  Mikami et al. 2018, "Massively distributed SGD", arXiv 1811.05233 (2D-torus all-reduce)
std::vector<CollectiveTime> hierarchical(const CostCall& call) {
  const auto& constants = call.cluster.collectives;
  const auto& fabric = call.cluster.fabric;
  const double nodes = call.group.nodes, inside = call.ranks_inside();
  if (call.group.nodes == 1 || call.ranks_inside() == 1) return {};
  const bool reduces_fully = call.collective == Collective::all_reduce;
  const double walks = reduces_fully ? 2 : 1;
  const double nics = network_share(call);
  const double efficiency = reduces_fully ? fabric.efficiency : fabric.gather_efficiency;
  const double crossing = walks * call.bytes() * (nodes - 1) / nodes;
  Terms terms;
  terms.latency =
      seconds(constants.base) * (walks + 1) +
      walks * (seconds(constants.step) * (inside - 1) + seconds(constants.network) * (nodes - 1));
  terms.ramp = ramp_across_nodes(call, crossing, nics);
  terms.scale_up = walks * call.bytes() * (inside - 1) / inside /
                   (call.protocols().simple_rate * ring_rate(call.cluster, call.ranks_inside()));
  terms.network = crossing / (efficiency * nics);
  return {finish(call, terms, Protocol::simple)};
}

}  // namespace orrery::models::collectives
