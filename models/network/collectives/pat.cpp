// PAT, parallel aggregated trees: gathers in log2 n rounds, for groups of one rank on each node.

#include <cmath>

#include "models/network/collectives/terms.hpp"

namespace orrery::models::collectives {

/// All-gather or reduce-scatter of n ranks on n nodes:
///   t = a + net ceil(log2 n) + ramp(V) + V / (gather_efficiency * share)
/// Leaves out the pipelining of large calls, whose trees are shortened to fit fixed-size buffers,
/// and the quarter of the rate that NCCL's tuner subtracts.
/// Source  Jeaugey 2025, "PAT: a new algorithm for all-gather and reduce-scatter operations at
///         scale", arXiv 2506.20252; runs with one GPU per node only, NCCL 2.23 and later
std::vector<CollectiveTime> pat(const CostCall& call) {
  const auto& group = call.group;
  if (group.nodes == 1 || group.nodes != group.ranks) return {};
  const auto& constants = call.cluster.collectives;
  const double nics = network_share(call);
  const double v = call.bus_bytes();
  Terms terms;
  terms.latency =
      seconds(constants.base) +
      seconds(constants.network) * std::ceil(std::log2(static_cast<double>(group.ranks)));
  terms.ramp = ramp_across_nodes(call, v, nics);
  terms.network = v / (call.cluster.fabric.gather_efficiency * nics);
  return {finish(call, terms, Protocol::simple)};
}

}  // namespace orrery::models::collectives
