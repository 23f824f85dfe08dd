#include "sim/topology/dragonfly.hpp"

#include "sim/errors.hpp"

namespace orrery {
namespace {

/// Where cables lie. A gap of k means: from group g to group g + 1 + k.
struct DragonflyPlan {
  std::size_t groups, routers, devices, global;  // in all, of a group, of a router, of a router
  std::vector<LinkId> out;                       // device to router
  std::vector<LinkId> in;                        // router to device
  std::vector<LinkId> local;                     // by router, then by its peer's place in the group
  std::vector<LinkId> across;                    // by group, then gap

  std::size_t gap(std::size_t from, std::size_t to) const {
    return (to + groups - from - 1) % groups;
  }
  /// The router of `from` that has the cable to `to`.
  std::size_t gateway(std::size_t from, std::size_t to) const {
    return from * routers + gap(from, to) / global;
  }
};

Route minimal(const DragonflyPlan& plan, std::size_t from, std::size_t to) {
  if (from == to) return {};
  Route route{plan.out[from]};
  std::size_t here = from / plan.devices;
  const std::size_t last = to / plan.devices;
  const auto walk = [&](std::size_t router) {
    if (router != here) route.push_back(plan.local[here * plan.routers + router % plan.routers]);
    here = router;
  };
  const std::size_t first_group = here / plan.routers;
  const std::size_t last_group = last / plan.routers;
  if (first_group != last_group) {
    walk(plan.gateway(first_group, last_group));
    route.push_back(
        plan.across[first_group * (plan.groups - 1) + plan.gap(first_group, last_group)]);
    here = plan.gateway(last_group, first_group);
  }
  walk(last);
  route.push_back(plan.in[to]);
  return route;
}

}  // namespace

Interconnect dragonfly(const Dragonfly& shape) {
  ensure(shape.groups >= 1 && shape.routers >= 1 && shape.devices_per_router >= 1 &&
             shape.global_per_router >= 1,
         "a dragonfly has at least 1 group, router, device and global cable");
  ensure(shape.groups <= shape.routers * shape.global_per_router + 1,
         "a dragonfly has at most a h + 1 groups");
  DragonflyPlan plan{static_cast<std::size_t>(shape.groups),
                     static_cast<std::size_t>(shape.routers),
                     static_cast<std::size_t>(shape.devices_per_router),
                     static_cast<std::size_t>(shape.global_per_router),
                     {},
                     {},
                     {},
                     {}};
  Interconnect built;
  Topology& topology = built.topology;
  std::vector<Vertex> routers;
  for (std::size_t r = 0; r < plan.groups * plan.routers; ++r) {
    routers.push_back(topology.add_switch());
    for (std::size_t d = 0; d < plan.devices; ++d) {
      built.devices.push_back(topology.add_device());
      const auto cable = topology.connect(built.devices.back(), routers.back(),
                                          shape.device_bandwidth, shape.latency);
      plan.out.push_back(cable.there);
      plan.in.push_back(cable.back);
    }
  }
  for (std::size_t r = 0; r < routers.size(); ++r) {
    for (std::size_t peer = 0; peer < plan.routers; ++peer) {
      const std::size_t other = r / plan.routers * plan.routers + peer;
      // A router has no cable to itself; its place in the table is never read.
      plan.local.push_back(other == r ? LinkId{}
                                      : topology.add_link(routers[r], routers[other],
                                                          shape.local_bandwidth, shape.latency));
    }
  }
  for (std::size_t group = 0; group < plan.groups; ++group) {
    for (std::size_t gap = 0; gap + 1 < plan.groups; ++gap) {
      const std::size_t other = (group + 1 + gap) % plan.groups;
      plan.across.push_back(topology.add_link(routers[plan.gateway(group, other)],
                                              routers[plan.gateway(other, group)],
                                              shape.global_bandwidth, shape.global_latency));
    }
  }
  built.route = [plan](std::size_t from, std::size_t to) {
    ensure(from < plan.out.size() && to < plan.out.size(),
           "a route joins two devices of its topology");
    return minimal(plan, from, to);
  };
  return built;
}

}  // namespace orrery
