#pragma once
// Random steps on random fabrics: trees of two and three levels, rails, scattered nodes, slow GPUs,
// degraded links from the beginning and from a moment on, blocking hosts, other jobs.

#include <cstdint>
#include <vector>

#include "models/evaluation/traffic/traffic.hpp"
#include "tests/models/evaluation/programs.hpp"

namespace orrery::models {

struct NetworkWorld {
  Case made;
  std::vector<Case> others;  // jobs on the same site
  NetworkSite site;
};

/// The same seed gives the same world everywhere.
NetworkWorld random_world(std::uint64_t seed);

}  // namespace orrery::models
