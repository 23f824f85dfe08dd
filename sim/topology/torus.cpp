#include "sim/topology/torus.hpp"

#include <utility>

#include "sim/errors.hpp"

namespace orrery {
namespace {

struct TorusAxis {
  std::size_t size = 1;
  std::size_t stride = 1;
  Border border = Border::wraps;
  std::vector<LinkId> up{};    // by router: to the next one
  std::vector<LinkId> down{};  // to the previous one; empty in a ring of two

  std::size_t at(std::size_t router) const { return router / stride % size; }
  /// The router `steps` steps up; one step down is size - 1 steps up.
  std::size_t stepped(std::size_t router, std::size_t steps) const {
    return router + ((at(router) + steps) % size) * stride - at(router) * stride;
  }
  /// True if the route from one router to another goes up.
  bool upward(std::size_t from, std::size_t to) const {
    return border == Border::ends ? at(to) > at(from)
                                  : 2 * ((at(to) + size - at(from)) % size) <= size;
  }
};

struct TorusPlan {
  std::vector<TorusAxis> axes;
  std::size_t devices = 0;     // in all
  std::size_t per_router = 1;  // devices

  void append(const FlowEnds& flow, Route& route) const;
};

LinkId device_link(std::size_t device, std::size_t back) {
  return LinkId{static_cast<std::uint32_t>(2 * device + back)};
}

void TorusPlan::append(const FlowEnds& flow, Route& route) const {
  ensure(flow.from < devices && flow.to < devices, "a route joins two devices of its topology");
  if (flow.from == flow.to) return;
  route.push_back(device_link(flow.from, 0));
  std::size_t here = flow.from / per_router;
  const std::size_t last = flow.to / per_router;
  for (const TorusAxis& axis : axes) {
    const bool upward = axis.upward(here, last);
    while (axis.at(here) != axis.at(last)) {
      route.push_back((upward ? axis.up : axis.down)[here]);
      here = axis.stepped(here, upward ? 1 : axis.size - 1);
    }
  }
  route.push_back(device_link(flow.to, 1));
}

/// Adds the links of one axis out of every router; those missing at the border of a mesh have a
/// table entry that is never read.
void wire(TorusAxis& axis, const Torus& shape, const Tier& routers, Topology& topology) {
  const auto vertex = [&](std::size_t router) {
    return Vertex{static_cast<std::uint32_t>(routers.first + router)};
  };
  for (std::size_t r = 0; r < routers.groups && axis.size > 1; ++r) {
    const auto link_to = [&](std::size_t steps) {
      return topology.add_link(vertex(r), vertex(axis.stepped(r, steps)), shape.bandwidth,
                               shape.latency);
    };
    const bool ends = shape.border == Border::ends;
    axis.up.push_back(ends && axis.at(r) + 1 == axis.size ? LinkId{} : link_to(1));
    if (axis.size == 2 && !ends) continue;
    axis.down.push_back(ends && axis.at(r) == 0 ? LinkId{} : link_to(axis.size - 1));
  }
}

}  // namespace

Interconnect torus(const Torus& shape) {
  ensure(!shape.dimensions.empty(), "a torus has a dimension");
  ensure(shape.devices_per_router >= 1, "a router of a torus has at least 1 device");
  TorusPlan plan;
  plan.per_router = static_cast<std::size_t>(shape.devices_per_router);
  std::size_t routers = 1;
  for (const int size : shape.dimensions) {
    ensure(size >= 1, "a dimension of a torus has at least 1 device");
    plan.axes.push_back(
        {.size = static_cast<std::size_t>(size), .stride = routers, .border = shape.border});
    routers *= static_cast<std::size_t>(size);
  }
  plan.devices = routers * plan.per_router;
  Interconnect built;
  for (std::size_t i = 0; i < plan.devices; ++i) {
    built.devices.push_back(built.topology.add_device());
  }
  const Tier tier{built.topology.vertices(), routers, 1};
  for (std::size_t r = 0; r < routers; ++r) built.topology.add_switch();
  for (std::size_t i = 0; i < plan.devices; ++i) {
    const auto router = static_cast<std::uint32_t>(tier.first + i / plan.per_router);
    built.topology.connect(built.devices[i], Vertex{router}, shape.device_bandwidth, shape.latency);
  }
  for (TorusAxis& axis : plan.axes) wire(axis, shape, tier, built.topology);
  built.tiers.push_back(tier);
  built.append = [plan = std::move(plan)](const FlowEnds& flow, Route& route) {
    plan.append(flow, route);
  };
  return built;
}

}  // namespace orrery
