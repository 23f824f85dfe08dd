#pragma once
// The load of one rank's step on its NIC, its links inside the node and its SMs, however its queues
// interleave. Prices let each queue that shares a NIC run at its full rate; the time that all of
// them need of the NIC together is a lower bound of the step. Leaves out at what times the queues
// compete for the NIC: a step may be longer than the bound.

#include <array>
#include <vector>

#include "models/evaluation/priced.hpp"

namespace orrery::models {

/// Times at full rate, of one rank over one step.
struct RankLoad {
  /// Collectives, by the class of their group: they send as much as they receive.
  std::array<LinkTimes, time_class_count> collectives{};
  LinkTimes sent{}, received{};  // between stages
  Time sm{};                     // kernels of the compute queue

  /// Time of the NIC: out of it or into it, whichever is more.
  Time nic() const;
  Time nvlink() const;
  /// The traffic class with the largest part of nic().
  TimeClass most_on_nic() const;
};

/// The load of one rank of a class, from PricedProgram::counts.
RankLoad load_of(const PricedProgram& priced, std::uint32_t rank_class);
/// The loads of all classes, by rank class.
std::vector<RankLoad> loads_of(const PricedProgram& priced);

/// The bound by the busiest NIC, the first of equals.
StepBound bound_of(const std::vector<RankLoad>& loads);

/// The share of one rank's step in which each is busy.
struct Busy {
  double nic = 0, nvlink = 0, sm = 0;
};
Busy busy_of(const RankLoad& load, Time step);

}  // namespace orrery::models
