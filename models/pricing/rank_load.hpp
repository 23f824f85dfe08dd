#pragma once
// What one rank's step asks of its NIC, its links inside the node and its SMs, however its queues
// interleave. Queues that share a NIC each run at its full rate here; what all of them need of it
// together bounds the step.
// Leaves out when in the step the queues meet on the NIC: a step may be longer than the bound.

#include <vector>

#include "models/evaluation/priced.hpp"

namespace orrery::models {

/// Times at full rate, of one rank over one step.
struct RankLoad {
  LinkTimes tensor{}, data{}, other{};  // collectives, by group: they send as much as they receive
  LinkTimes sent{}, received{};         // between stages
  Time sm{};                            // kernels of the compute queue

  /// Out of the NIC or into it, whichever is more.
  Time nic() const;
  Time nvlink() const;
  /// Who has most of nic().
  TimeClass most_on_nic() const;
};

/// Of one rank of a class.
RankLoad load_of(const PricedProgram& priced, std::uint32_t rank_class);
/// Of all, by rank class.
std::vector<RankLoad> loads_of(const PricedProgram& priced);

/// The fullest NIC, the first of equals.
StepBound bound_of(const std::vector<RankLoad>& loads);

/// Of one rank's step, the share in which each is busy.
struct Busy {
  double nic = 0, nvlink = 0, sm = 0;
};
Busy busy_of(const RankLoad& load, Time step);

}  // namespace orrery::models
