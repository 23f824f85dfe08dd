#pragma once
// NCCL's own cost model, by which it chooses the algorithm and protocol with the least expected
// time. Used for the choice only: the time of the chosen algorithm is predicted by our cost models.
//   time = latency + bytes / bandwidth
// Leaves out NVLS of gathers, CollNet and PAT (both need what default settings lack), kernels on
// symmetric memory, tuner plugins, and AMD hosts (2 us to post a message instead of 1).
// Source  NCCL 2.30.7, src/graph/tuning.cc, src/graph/topo.h, src/graph/search.cc

#include <string_view>
#include <vector>

#include "models/network/collectives/collective.hpp"

namespace orrery::models {

/// One algorithm and protocol with NCCL's expected time.
struct TunedChoice {
  std::string_view algorithm;  // of builtin_algorithms
  Protocol protocol = Protocol::simple;
  double expected = 0;  // seconds
};

/// All choices that NCCL compares for one call, by expected time, the fastest first. Empty for
/// collectives that it does not tune: all-to-alls, messages, gather and scatter.
/// Errors  a group of one rank: ContractError
std::vector<TunedChoice> nccl_choices(Collective collective, Bytes size, const GroupShape& group,
                                      const hardware::Cluster& cluster);

}  // namespace orrery::models
