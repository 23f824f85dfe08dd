#pragma once
// A torus of any dimensions: every device forwards, and is cabled to its two neighbours along each
// dimension (to one where the dimension has two devices). Routes go dimension by dimension, the
// shorter way round, up where both are as long. Leaves out adaptive routing and twisted tori.
// Source  Dally & Towles 2004, "Principles and practices of interconnection networks", chapter 8

#include <vector>

#include "sim/topology/topology.hpp"

namespace orrery {

struct Torus {
  std::vector<int> dimensions{};  // the first one varies fastest in a device's number
  Bandwidth bandwidth{};          // of each cable, per direction
  Time latency{};
};

/// Errors  no dimension, or one < 1: ContractError
Interconnect torus(const Torus& shape);

}  // namespace orrery
