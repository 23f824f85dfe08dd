#pragma once
// A cluster's own collective times, measured by nccl-tests or this project's calibration for groups
// of some numbers of ranks. Times as of the group alone, ranks of all its nodes busy.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/curves/size_table.hpp"

namespace orrery {
class Node;
}

namespace orrery::hardware {

/// The operations that a table may be of, by their names in the cost model.
inline constexpr std::array<std::string_view, 7> measured_operations{
    "all_reduce", "all_gather", "reduce_scatter", "broadcast",
    "reduce",     "all_to_all", "send_receive"};

struct CollectiveTable {
  std::string operation;  // one of `measured_operations`; size in `times` as in the cost model
  int ranks = 2;
  int nodes = 1;
  SizeTable times;
};

/// Reads a cluster's `measured_collectives` member: `[{operation, ranks, nodes?, points}]`.
std::vector<CollectiveTable> read_collective_tables(const Node& tables);

}  // namespace orrery::hardware
