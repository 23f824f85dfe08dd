// One message between two ranks, such as a pipeline's activations and their gradients.

#include "models/network/collectives/terms.hpp"

namespace orrery::models::collectives {

/// Inside a node
///   t = a + 2.8 us + 0.15 us * sqrt(size / R in ns) + size / (0.92 ring)
/// and across nodes
///   t = a + 2.8 us + net + size / (0.8 efficiency * share)
/// ring    ring_rate of two ranks
/// share   network_share: the NIC rate that is left while siblings send, too
/// Leaves out the drop between 1 and 128 MiB in a public log of a B200 node (84 GB/s, then 664),
/// caused by that NCCL version's choice of channels.
/// Source  a, net: the cluster's constants; 2.8 us and the square root: the all-to-all's fit (a
///         message is one of its peers); 0.92: the same B200 log at 16 GiB, 664 GB/s of a ring of
///         720. Across nodes as the all-to-all: on the one site where both were measured, under two
///         settings, messages had 19.6 and 35.8 GB/s, all-to-alls 22.6 and 37
std::vector<CollectiveTime> direct(const CostCall& call) {
  const auto& protocols = call.protocols();
  const auto& constants = call.cluster.collectives;
  Terms terms;
  terms.latency = seconds(constants.base) + seconds(protocols.pair_base);
  if (call.group.nodes > 1) {
    terms.latency += seconds(constants.network);
    terms.network = call.bytes() / (pair_efficiency(call) * network_share(call));
    return {finish(call, terms, std::nullopt)};
  }
  terms.ramp = pair_ramp(call.bytes(), call);
  terms.scale_up = call.bytes() / (protocols.message_rate * ring_rate(call.cluster, 2));
  return {finish(call, terms, std::nullopt)};
}

}  // namespace orrery::models::collectives
