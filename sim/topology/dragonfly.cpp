#include "sim/topology/dragonfly.hpp"

#include <algorithm>
#include <utility>

#include "sim/errors.hpp"

namespace orrery {
namespace {

/// Counts and link tables of a dragonfly. A gap of k means: from group g to group g + 1 + k.
struct DragonflyPlan {
  std::size_t groups, routers, devices,
      global;                    // total; per group; per router; cables per router
  std::size_t width = 1;         // cables between two groups
  std::vector<LinkId> local{};   // by router, then by its peer's place in the group
  std::vector<LinkId> across{};  // by group, then gap, then cable

  std::size_t gap(std::size_t from, std::size_t to) const {
    return (to + groups - from - 1) % groups;
  }
  /// The router of `from` that has a cable to `to`.
  std::size_t gateway(std::size_t from, std::size_t to, std::size_t cable) const {
    return from * routers + (gap(from, to) * width + cable) / global;
  }
  LinkId between(std::size_t from, std::size_t to, std::size_t cable) const {
    return across[(from * (groups - 1) + gap(from, to)) * width + cable];
  }
  std::size_t routers_in_all() const { return groups * routers; }
  std::size_t devices_in_all() const { return routers_in_all() * devices; }

  std::size_t chosen_cable(std::size_t from, std::size_t to, const FlowEnds& flow) const;
  void append(const FlowEnds& flow, Route& route) const;
};

std::size_t DragonflyPlan::chosen_cable(std::size_t from, std::size_t to,
                                        const FlowEnds& flow) const {
  if (flow.choice == PathChoice::by_destination) return flow.to % width;
  if (flow.choice == PathChoice::by_hash) return hashed_choice(flow, 0, width);
  std::size_t best = 0;
  for (std::size_t cable = 1; cable < width; ++cable) {
    if (flow.loads[index(between(from, to, cable))] < flow.loads[index(between(from, to, best))]) {
      best = cable;
    }
  }
  return best;
}

void DragonflyPlan::append(const FlowEnds& flow, Route& route) const {
  ensure(flow.from < devices_in_all() && flow.to < devices_in_all(),
         "a route joins two devices of its topology");
  if (flow.from == flow.to) return;
  route.push_back(LinkId{static_cast<std::uint32_t>(2 * flow.from)});
  std::size_t here = flow.from / devices;
  const std::size_t last = flow.to / devices;
  const auto walk = [&](std::size_t router) {
    if (router != here) route.push_back(local[here * routers + router % routers]);
    here = router;
  };
  const std::size_t first_group = here / routers;
  const std::size_t last_group = last / routers;
  if (first_group != last_group) {
    const std::size_t cable = chosen_cable(first_group, last_group, flow);
    walk(gateway(first_group, last_group, cable));
    route.push_back(between(first_group, last_group, cable));
    here = gateway(last_group, first_group, cable);
  }
  walk(last);
  route.push_back(LinkId{static_cast<std::uint32_t>(2 * flow.to + 1)});
}

void check(const Dragonfly& shape) {
  ensure(shape.groups >= 1 && shape.routers >= 1 && shape.devices_per_router >= 1 &&
             shape.global_per_router >= 1,
         "a dragonfly has at least 1 group, router, device and global cable");
  ensure(shape.groups <= shape.routers * shape.global_per_router + 1,
         "a dragonfly has at most a h + 1 groups");
}

DragonflyPlan plan_of(const Dragonfly& shape) {
  DragonflyPlan plan{static_cast<std::size_t>(shape.groups),
                     static_cast<std::size_t>(shape.routers),
                     static_cast<std::size_t>(shape.devices_per_router),
                     static_cast<std::size_t>(shape.global_per_router)};
  plan.width = plan.routers * plan.global / std::max<std::size_t>(1, plan.groups - 1);
  return plan;
}

/// All cables between routers, a link for each direction.
void wire(DragonflyPlan& plan, const Dragonfly& shape, std::size_t first, Topology& topology) {
  const auto router = [first](std::size_t r) {
    return Vertex{static_cast<std::uint32_t>(first + r)};
  };
  for (std::size_t r = 0; r < plan.routers_in_all(); ++r) {
    for (std::size_t peer = 0; peer < plan.routers; ++peer) {
      const std::size_t other = r / plan.routers * plan.routers + peer;
      // A router has no cable to itself; its place in the table is never read.
      plan.local.push_back(other == r ? LinkId{}
                                      : topology.add_link(router(r), router(other),
                                                          shape.local_bandwidth, shape.latency));
    }
  }
  for (std::size_t group = 0; group < plan.groups; ++group) {
    for (std::size_t gap = 0; gap + 1 < plan.groups; ++gap) {
      const std::size_t other = (group + 1 + gap) % plan.groups;
      for (std::size_t cable = 0; cable < plan.width; ++cable) {
        plan.across.push_back(topology.add_link(router(plan.gateway(group, other, cable)),
                                                router(plan.gateway(other, group, cable)),
                                                shape.global_bandwidth, shape.global_latency));
      }
    }
  }
}

}  // namespace

Interconnect dragonfly(const Dragonfly& shape) {
  check(shape);
  DragonflyPlan plan = plan_of(shape);
  Interconnect built;
  for (std::size_t d = 0; d < plan.devices_in_all(); ++d) {
    built.devices.push_back(built.topology.add_device());
  }
  const Tier tier{built.topology.vertices(), plan.groups, plan.routers};
  built.tiers.push_back(tier);
  for (std::size_t r = 0; r < plan.routers_in_all(); ++r) built.topology.add_switch();
  for (std::size_t d = 0; d < plan.devices_in_all(); ++d) {
    const auto router = static_cast<std::uint32_t>(tier.first + d / plan.devices);
    built.topology.connect(built.devices[d], Vertex{router}, shape.device_bandwidth, shape.latency);
  }
  wire(plan, shape, tier.first, built.topology);
  const std::size_t links = built.topology.links().size();
  built.append = [plan = std::move(plan), links](const FlowEnds& flow, Route& route) {
    ensure(flow.choice != PathChoice::least_loaded || flow.loads.size() == links,
           "the least loaded cable is chosen by the load of every link");
    plan.append(flow, route);
  };
  return built;
}

}  // namespace orrery
