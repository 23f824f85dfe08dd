// Ring: each rank passes shards to its neighbour. Inside a node there is one candidate per
// protocol.

#include <algorithm>

#include "models/network/collectives/terms.hpp"

namespace orrery::models::collectives {
namespace {

/// Trips round the ring: two (2(n-1) steps) for an all-reduce, one (n-1 steps) for the others.
int rounds(Collective collective) {
  return collective == Collective::all_reduce ? 2 : 1;
}

/// Does each rank own a shard? Broadcast and reduce are pipelined along the ring instead.
bool has_shards(Collective collective) {
  return collective != Collective::broadcast && collective != Collective::reduce;
}

/// Rate of the LL protocol, half of whose bytes are flags; never above the ring's rate.
double ll_bytes_per_second(const CostCall& call) {
  const double ring = ring_rate(call.cluster, call.group.ranks);
  for (const auto& rate : call.cluster.collectives.group_rates) {
    if (rate.ranks >= call.group.ranks && rate.low_latency.count() > 0) {
      return std::min(ring, rate.low_latency.count());
    }
  }
  return std::min(ring, call.protocols().ll_rate * link_rate(call.cluster) *
                            reach(call.cluster, call.group.ranks));
}

/// Ring of n ranks inside one node, bus bytes V, l = a + h * rounds * (n-1):
///   LL      l + min(V / 0.021 R, 0.108 l) + V / 0.282 R
///   LL128   2.43 l + V / 0.715 R + own       (over NVLink, and xGMI)
///   Simple  2.92 l + V / 0.976 ring + own
/// own     size / n / 1.49 R, the copy of a rank's own shard; 0 in a broadcast or reduce, and over
///         PCIe, where the link is slower than any copy inside a GPU
/// a, h    base and step of the cluster's constants; R link rate (times reach in 0.282 R and
///         0.715 R); ring: ring_rate
/// Source  form: size over rate plus steps, as NCCL's tuner (src/graph/tuning.cc). Constants
///         (ProtocolConstants), common to A100, Hopper and Blackwell: least |log error| of the
///         smallest candidate over 1,415 rows of public nccl-tests runs (2, 4, 8 GPUs, 512 B to
///         512 MiB, mostly NVIDIA aiconfigurator's tables): 3.7 % median, 3.9 % on curves held out
///         of the fit (four folds); base and step as fitted on all. LL128 over xGMI: RCCL takes it
///         for all-reduces of 1 to 9 MiB (ROCm/rccl src/graph/tuning.cc, llProtoRanges)
std::vector<CollectiveTime> ring_in_node(const CostCall& call) {
  const auto& constants = call.cluster.collectives;
  const auto& protocols = call.protocols();
  const int ranks = call.group.ranks;
  const double l =
      seconds(constants.base) + seconds(constants.step) * rounds(call.collective) * (ranks - 1);
  const double v = call.bus_bytes();
  const double r = link_rate(call.cluster);
  const auto links = call.cluster.node.scale_up;
  const bool pcie = links == hardware::ScaleUp::pcie;
  const bool has_ll128 = links == hardware::ScaleUp::nvswitch || links == hardware::ScaleUp::mesh ||
                         links == hardware::ScaleUp::xgmi;
  const double own = has_shards(call.collective) && !pcie
                         ? call.bytes() / ranks / (protocols.own_shard_rate * r)
                         : 0;

  std::vector<CollectiveTime> times;
  times.push_back(
      finish(call,
             {.latency = l,
              .ramp = std::min(v / (protocols.ll_ramp_rate * r), protocols.ll_ramp_limit * l),
              .scale_up = v / ll_bytes_per_second(call)},
             Protocol::ll));
  if (has_ll128) {
    times.push_back(
        finish(call,
               {.latency = protocols.ll128_latency * l,
                .scale_up = v / (protocols.ll128_rate * r * reach(call.cluster, ranks)) + own},
               Protocol::ll128));
  }
  const double simple = protocols.simple_rate * ring_rate(call.cluster, ranks);
  times.push_back(finish(call,
                         {.latency = protocols.simple_latency * l, .scale_up = v / simple + own},
                         Protocol::simple));
  return times;
}

/// Ring over N nodes, one cost model for all protocols:
///   t = a + rounds * (h (n-N) + net (N-1)) + ramp(V) + V / B
/// B       the smaller of the ring's rate inside a node and efficiency * NIC share; the fabric's
///         gather_efficiency for all but an all-reduce
/// Source  latency: NCCL's tuner (n-N hops inside, N-1 between) with the one-node a and h, within
///         9 % at <= 4 KiB on H100, B200 and GH200 logs; ramp and B: ramp_across_nodes and above
CollectiveTime ring_across_nodes(const CostCall& call) {
  const auto& constants = call.cluster.collectives;
  const auto& group = call.group;
  const double walks = rounds(call.collective);
  const double v = call.bus_bytes();
  const double nics = network_share(call);
  const auto& fabric = call.cluster.fabric;
  const bool reduces_fully = call.collective == Collective::all_reduce;
  const double wire = nics * (reduces_fully ? fabric.efficiency : fabric.gather_efficiency);

  Terms terms;
  terms.latency =
      seconds(constants.base) + walks * (seconds(constants.step) * (group.ranks - group.nodes) +
                                         seconds(constants.network) * (group.nodes - 1));
  terms.ramp = ramp_across_nodes(call, v, nics);
  const int inside = call.ranks_inside();
  const double on_wire = v / wire;
  const double on_links =
      inside > 1 ? v / (call.protocols().simple_rate * ring_rate(call.cluster, inside)) : 0;
  (on_links > on_wire ? terms.scale_up : terms.network) = std::max(on_links, on_wire);
  terms.hidden = std::min(on_links, on_wire);
  return finish(call, terms, std::nullopt);
}

}  // namespace

std::vector<CollectiveTime> ring(const CostCall& call) {
  if (call.group.nodes == 1) return ring_in_node(call);
  return {ring_across_nodes(call)};
}

}  // namespace orrery::models::collectives
