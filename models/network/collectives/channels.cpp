// How many channels NCCL opens for a communicator. Each channel is a ring or tree of its own, with
// a queue pair on the NIC that it crosses.

#include <algorithm>
#include <cmath>

#include "models/network/collectives/terms.hpp"

namespace orrery::models::collectives {
namespace {

/// Rounds towards zero, within 0 to 1024 so that products with it stay within an int.
int count_of(double number) {
  return static_cast<int>(std::clamp(number, 0.0, 1024.0));
}

/// Compute capabilities, times ten.
constexpr int ampere = 80, hopper = 90, blackwell = 100;

int capability(const CostCall& call) {
  return call.cluster.gpu().generation.compute_capability;
}

/// The default of NCCL_IB_QPS_PER_CONNECTION.
/// Source  NCCL user guide, "Environment variables"
constexpr int queue_pairs = 1;

/// Channels of a ring inside one node: twice what NCCL's graph search finds: 12 x 20 GB/s on A100,
/// 12 x 30 on H100, 16 x 45 on B200. 0: not known.
/// Source  NCCL 2.30, src/graph/search.cc (lists of speeds), src/graph/connect.cc (each twice)
int channels_inside(const CostCall& call) {
  if (call.cluster.node.scale_up != hardware::ScaleUp::nvswitch) return 0;
  if (capability(call) >= blackwell) return 32;
  return capability(call) >= ampere ? 24 : 0;
}

/// Channels of a ring or tree across nodes. The search finds one per NIC at the NIC's rate (at most
/// 48 GB/s, 96 on Blackwell, so that a faster NIC has several) and splits it in two at 25 GB/s or
/// more, unless, from Hopper on, it found more than four below 50 GB/s; connecting doubles them.
/// Leaves out the doubling of fewer than 16 channels from Hopper on where links inside a node have
/// more than 45 GB/s for each.
/// Source  NCCL 2.30, src/graph/search.cc, src/graph/connect.cc
ChannelCount channels_across(const CostCall& call) {
  const double rate = call.cluster.nic_bandwidth().count() / 1e9;
  const double fastest = capability(call) >= blackwell ? 96 : 48;
  const int nics = std::max(1, count_of(std::round(nics_used(call))));
  const int on_each = std::max(1, count_of(rate / fastest));
  const double speed = std::min(rate / on_each, fastest);
  const bool kept = capability(call) >= hopper && speed < 50 && nics * on_each > 4;
  const int found = on_each * (speed >= 25 && !kept ? 2 : 1);
  return {.channels = 2 * found * nics, .flows = 2 * found * queue_pairs};
}

/// Channels of point-to-point transfers across nodes: per peer one for every 14 GB/s of a rank's
/// NICs, halved until the channels of all peers fit into 64.
/// Source  NCCL 2.30, src/graph/paths.cc
ChannelCount channels_of_pairs(const CostCall& call) {
  const double nics = nics_used(call) / call.group.ranks_per_node;
  const double rate = call.cluster.nic_bandwidth().count() / 1e9 * std::max(1.0, nics);
  constexpr double of_one = 14;
  constexpr int most = 64;
  int each = count_of(std::ceil(rate / of_one));
  while (each > 1 && each * (call.group.ranks - 1) > most) each /= 2;
  return {.channels = std::min(most, each * (call.group.ranks - 1)), .flows = each * queue_pairs};
}

}  // namespace

ChannelCount channels_of(const CostCall& call, TrafficPattern pattern) {
  const bool of_pairs = pattern == TrafficPattern::pair || pattern == TrafficPattern::all_pairs ||
                        pattern == TrafficPattern::star;
  if (call.group.nodes == 1) return {.channels = of_pairs ? 0 : channels_inside(call)};
  return of_pairs ? channels_of_pairs(call) : channels_across(call);
}

}  // namespace orrery::models::collectives
