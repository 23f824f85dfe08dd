#pragma once
// Tori and meshes of any dimensions: routers cabled to their two neighbours along each dimension
// (to one where the dimension has two routers, or at the border of a mesh), with devices at every
// router. Routes go dimension by dimension, on a torus the shorter way round, up if both are
// equally long. Leaves out adaptive routing and twisted tori.
// Source  Dally & Towles 2004, "Principles and practices of interconnection networks", chapter 8

#include <cstdint>
#include <vector>

#include "sim/topology/topology.hpp"

namespace orrery {

enum class Border : std::uint8_t { wraps, ends };

struct Torus {
  std::vector<int> dimensions{};  // the first one varies fastest in a router's number
  Border border = Border::wraps;  // ends: a mesh
  int devices_per_router = 1;
  Bandwidth device_bandwidth{};  // per direction, as the next
  Bandwidth bandwidth{};         // of a cable between routers
  Time latency{};                // of each cable
};

/// Devices are numbered router by router.
/// Errors  no dimension, a count < 1: ContractError
Interconnect torus(const Torus& shape);

}  // namespace orrery
