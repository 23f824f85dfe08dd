#pragma once
// A cluster's own collective times, measured by nccl-tests or this project's calibration for groups
// of some numbers of ranks. Times as of the group alone, ranks of all its nodes busy.

#include <string>
#include <vector>

#include "hardware/size_table.hpp"

namespace orrery {
class Node;
}

namespace orrery::hardware {

struct CollectiveTable {
  std::string operation;  // "all_reduce": name, and size in `times`, as in the cost model
  int ranks = 2;
  int nodes = 1;
  SizeTable times;
};

/// Reads a cluster's `measured_collectives` member: `[{operation, ranks, nodes?, points}]`.
std::vector<CollectiveTable> read_collective_tables(const Node& tables);

}  // namespace orrery::hardware
