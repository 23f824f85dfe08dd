#pragma once
// Nodes as a busy cluster hands them out: in no order.

#include <cstdint>
#include <vector>

namespace orrery::models {

/// All nodes in a random order, the same everywhere for one seed.
std::vector<std::int64_t> scattered_nodes(std::int64_t nodes, std::uint64_t seed);

}  // namespace orrery::models
