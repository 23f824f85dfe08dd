#pragma once
// A cluster's own measured collectives: what nccl-tests, or this project's calibration, found for
// groups of some number of ranks. Times as of the group alone, ranks of all its nodes busy.

#include <string>
#include <vector>

#include "hardware/size_table.hpp"

namespace orrery {
class Node;
}

namespace orrery::hardware {

struct CollectiveTable {
  std::string
      operation;  // "all_reduce", as the cost model's collectives are named; size as there too
  int ranks = 2;
  int nodes = 1;
  SizeTable times;
};

/// Of a cluster's `measured_collectives` member: `[{operation, ranks, nodes?, points}]`.
std::vector<CollectiveTable> read_collective_tables(const Node& tables);

}  // namespace orrery::hardware
