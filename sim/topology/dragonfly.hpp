#pragma once
// A dragonfly: groups of routers, all routers of a group cabled to each other, and every two groups
// joined by the same number of cables. Routes are minimal: at most one cable in the first group,
// one between groups and one in the last. Leaves out non-minimal (Valiant) routing.
// Source  Kim, Dally, Scott & Abts 2008, "Technology-driven, highly-scalable dragonfly topology"

#include "sim/topology/topology.hpp"

namespace orrery {

struct Dragonfly {
  int groups = 0;
  int routers = 0;               // per group: a
  int devices_per_router = 0;    // p
  int global_per_router = 0;     // h: cables of a router to other groups
  Bandwidth device_bandwidth{};  // per direction, as the two below
  Bandwidth local_bandwidth{};
  Bandwidth global_bandwidth{};
  Time latency{};         // of a cable inside a group and to a device
  Time global_latency{};  // of a cable between groups
};

/// Devices are numbered group by group, router by router. Two groups are joined by
/// w = a h / (groups - 1) cables, rounded down; the j-th of group g to group g + 1 + k (modulo the
/// number of groups) leaves from its router (k w + j) / h. A flow takes cable (to modulo w), the
/// cable chosen by hash, or the least loaded one. Errors  a count < 1, groups > a h + 1, least
/// loaded without the load of every link: ContractError
Interconnect dragonfly(const Dragonfly& shape);

}  // namespace orrery
