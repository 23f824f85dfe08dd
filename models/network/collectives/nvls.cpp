// NVLS: the NVLink switch adds, each GPU sends and receives every byte once.

#include <cmath>

#include "models/network/collectives/terms.hpp"

namespace orrery::models::collectives {
namespace {

/// Source  fitted with the ring's constants on the same rows (143 of them NVLS)
constexpr double nvls_base = 27e-6;       // seconds: setting up and fencing the multicast
constexpr double per_root_byte = 6.7e-9;  // seconds, times the root of the bus bytes of 8 ranks
constexpr double bus_of_eight = 1.75;     // 2(n-1)/n at n = 8, where the root's factor was fitted
constexpr int fewest_ranks = 5;           // up to 4 NCCL's ring is as fast and stays

}  // namespace

bool nvls_runs(const hardware::Cluster& cluster, int ranks_inside) {
  return cluster.node.switch_reduces && cluster.collectives.switch_rate.count() > 0 &&
         ranks_inside >= fewest_ranks;
}

/// All-reduce inside one node, the same for any number of ranks:
///   t = 27 us + 6.7 ns * sqrt(1.75 size) + size / switch_rate
/// size    in bytes; switch_rate 274 GB/s on Hopper, 480 on Blackwell
/// Source  public logs of 5 to 8 H200 and 6 to 8 B200 at 8 GiB (bus bandwidth 414, 436, 460, 473;
///         778, 811, 838): one time for all
std::optional<CollectiveTime> nvls(const CostCall& call) {
  if (call.collective != Collective::all_reduce || !nvls_runs(call.cluster, call.group.ranks)) {
    return std::nullopt;
  }
  return finish({.latency = nvls_base,
                 .ramp = per_root_byte * std::sqrt(bus_of_eight * call.bytes()),
                 .scale_up = call.bytes() / call.cluster.collectives.switch_rate.count()},
                Algorithm::nvls, Protocol::simple);
}

}  // namespace orrery::models::collectives
