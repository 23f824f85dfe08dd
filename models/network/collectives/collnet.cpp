// CollNet: the fabric's switches reduce (SHARP), so that every node sends its partial sum once and
// receives the total once.

#include <algorithm>

#include "models/network/collectives/terms.hpp"

namespace orrery::models::collectives {

/// All-reduce of n ranks on N nodes, p = n/N on each, a chain inside each:
///   t = a + 2 h (p-1) + net + ramp(V) + max(size / (efficiency * share), V / (0.9 inside))
/// inside  rate inside a node: of a ring, or of the NVLink switch where it reduces, as in tree.cpp
/// Runs only where the fabric's switches reduce (`reduces` of the fabric).
/// Leaves out limits on concurrent reduction trees in the switches, and on number formats.
/// Source  Graham et al. 2016, "Scalable hierarchical aggregation protocol (SHArP)"; latency as
///         NCCL's tuner composes it (src/graph/tuning.cc): one hop of the network, whatever N
std::vector<CollectiveTime> collnet(const CostCall& call) {
  if (call.group.nodes == 1 || !call.cluster.fabric.switch_reduces) return {};
  const auto& constants = call.cluster.collectives;
  const int inside = call.ranks_inside();
  const double v = call.bus_bytes();
  const double nics = network_share(call);
  const double on_wire = call.bytes() / (call.cluster.fabric.efficiency * nics);
  double on_links = 0;
  if (inside > 1) {
    double rate = ring_rate(call.cluster, inside);
    if (nvls_runs(call.cluster, inside)) {
      rate = std::max(
          rate, bus_factor(call.collective, call.group.ranks) * constants.switch_rate.count());
    }
    on_links = v / (call.protocols().tree_scale_up * rate);
  }
  Terms terms;
  terms.latency = seconds(constants.base) + 2 * seconds(constants.step) * (inside - 1) +
                  seconds(constants.network);
  terms.ramp = ramp_across_nodes(call, v, nics);
  (on_links > on_wire ? terms.scale_up : terms.network) = std::max(on_links, on_wire);
  terms.hidden = std::min(on_links, on_wire);
  return {finish(call, terms, Protocol::simple)};
}

}  // namespace orrery::models::collectives
