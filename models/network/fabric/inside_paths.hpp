#pragma once
// The links inside a node on the paths between its GPUs and its NICs.

#include <cstdint>
#include <vector>

namespace orrery::models {

/// Links of one node are numbered from 0, those of node n from first_link + n x links_per_node.
struct InsidePaths {
  std::uint32_t first_link = 0;
  std::uint32_t links_per_node = 0;
  /// Links out of the node and into it, indexed by GPU x NICs + NIC. Empty: not known.
  std::vector<std::vector<std::uint32_t>> out, in;

  bool empty() const { return out.empty(); }
};

}  // namespace orrery::models
