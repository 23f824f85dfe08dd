#pragma once
// Random placement: the nodes of a job in no particular order, as a busy cluster allocates them.

#include <cstdint>
#include <vector>

namespace orrery::models {

/// All nodes in a random order that depends only on the seed.
std::vector<std::int64_t> scattered_nodes(std::int64_t nodes, std::uint64_t seed);

}  // namespace orrery::models
