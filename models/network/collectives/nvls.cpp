// NVLS: the NVLink switch reduces, and each GPU sends and receives every byte once.

#include <cmath>

#include "models/network/collectives/terms.hpp"

namespace orrery::models::collectives {
namespace {

constexpr double bus_of_eight = 1.75;  // 2(n-1)/n at n = 8, where the square root was fitted
constexpr int fewest_ranks = 5;        // up to 4 ranks NCCL's ring is as fast and is used

}  // namespace

bool nvls_runs(const hardware::Cluster& cluster, int ranks_inside) {
  return cluster.node.switch_reduces && cluster.collectives.switch_rate.count() > 0 &&
         ranks_inside >= fewest_ranks;
}

/// All-reduce inside one node, the same for any number of ranks:
///   t = 27 us + 6.7 ns * sqrt(1.75 size) + size / switch_rate
/// size    in bytes; switch_rate 274 GB/s on Hopper, 480 on Blackwell
/// Source  public logs of 5 to 8 H200 and 6 to 8 B200 at 8 GiB (bus bandwidth 414, 436, 460, 473;
///         778, 811, 838): the same time for all; 27 us and the square root: fitted with the ring's
///         constants on the same rows (143 of them NVLS)
std::vector<CollectiveTime> nvls(const CostCall& call) {
  if (call.group.nodes > 1 || !nvls_runs(call.cluster, call.group.ranks)) return {};
  const auto& protocols = call.protocols();
  return {finish(call,
                 {.latency = seconds(protocols.switch_base),
                  .ramp = protocols.switch_root * std::sqrt(bus_of_eight * call.bytes()),
                  .scale_up = call.bytes() / call.cluster.collectives.switch_rate.count()},
                 Protocol::simple)};
}

}  // namespace orrery::models::collectives
