#pragma once
// What NCCL itself expects of its algorithms, from the constants of its own cost model; it runs the
// one of least time. A choice, not a prediction: what the chosen one takes, the cost models say.
//   time = latency + bytes / bandwidth
// Leaves out NVLS of gathers, CollNet and PAT (both need what the defaults lack), symmetric-memory
// kernels, tuner plugins, and hosts of AMD (2 us to post a message instead of 1).
// Source  NCCL 2.30.7, src/graph/tuning.cc, src/graph/topo.h, src/graph/search.cc

#include <string_view>
#include <vector>

#include "models/network/collectives/collective.hpp"

namespace orrery::models {

struct TunedChoice {
  std::string_view algorithm;  // of builtin_algorithms
  Protocol protocol = Protocol::simple;
  double expected = 0;  // seconds
};

/// All that NCCL compares for one call, the one that it expects to be fastest first. Empty for what
/// it does not tune: all-to-alls, messages, gather and scatter.
/// Errors  a group of one rank: ContractError
std::vector<TunedChoice> nccl_choices(Collective collective, Bytes size, const GroupShape& group,
                                      const hardware::Cluster& cluster);

}  // namespace orrery::models
