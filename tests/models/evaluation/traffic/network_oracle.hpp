#pragma once
// A test's oracle: every rank and every link on its own, without folding, heap, maps or look-ahead.
// What is not known yet is infinite and makes infinite what waits for it. After every instant all
// rates are found again from nothing.

#include <vector>

#include "models/evaluation/step_times.hpp"
#include "models/evaluation/traffic/traffic.hpp"

namespace orrery::models {

struct OracleTimes {
  std::vector<QueueTimes> ranks;             // class x replicas + replica
  std::vector<std::vector<Time>> transfers;  // channel x replicas + replica
  /// By joint collective, of the group of each rank; of ranks that take no part 0.
  std::vector<std::vector<Time>> starts, ends;
  /// By other job, until our step has ended.
  std::vector<std::vector<Time>> other_steps;
  int contended = 0;  // instants with a rate below a flow's cap
};

OracleTimes oracle_times(const PricedProgram& priced, const NetworkSite& site);

}  // namespace orrery::models
