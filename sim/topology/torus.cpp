#include "sim/topology/torus.hpp"

#include <utility>

#include "sim/errors.hpp"

namespace orrery {
namespace {

struct TorusAxis {
  std::size_t size;
  std::size_t stride;
};

/// The device one step along an axis; a step back is size - 1 steps on.
std::size_t stepped(std::size_t device, TorusAxis axis, std::size_t steps) {
  const std::size_t at = device / axis.stride % axis.size;
  return device + ((at + steps) % axis.size) * axis.stride - at * axis.stride;
}

}  // namespace

Interconnect torus(const Torus& shape) {
  ensure(!shape.dimensions.empty(), "a torus has a dimension");
  std::vector<TorusAxis> axes;
  std::size_t devices = 1;
  for (const int size : shape.dimensions) {
    ensure(size >= 1, "a dimension of a torus has at least 1 device");
    axes.push_back({static_cast<std::size_t>(size), devices});
    devices *= static_cast<std::size_t>(size);
  }
  Interconnect built;
  for (std::size_t i = 0; i < devices; ++i) built.devices.push_back(built.topology.add_device());

  std::vector<std::vector<LinkId>> up(axes.size());  // by axis and device: to the next one
  std::vector<std::vector<LinkId>> down(axes.size());
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const TorusAxis axis = axes[a];
    for (std::size_t i = 0; i < devices && axis.size > 1; ++i) {
      const auto link_to = [&](std::size_t other) {
        return built.topology.add_link(built.devices[i], built.devices[other], shape.bandwidth,
                                       shape.latency);
      };
      up[a].push_back(link_to(stepped(i, axis, 1)));
      if (axis.size > 2) down[a].push_back(link_to(stepped(i, axis, axis.size - 1)));
    }
  }

  built.route = [axes, devices, up, down](std::size_t from, std::size_t to) {
    ensure(from < devices && to < devices, "a route joins two devices of its topology");
    Route route;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const TorusAxis axis = axes[a];
      const auto at = [axis](std::size_t device) { return device / axis.stride % axis.size; };
      const std::size_t ahead = (at(to) + axis.size - at(from)) % axis.size;
      const bool upward = 2 * ahead <= axis.size;
      while (at(from) != at(to)) {
        route.push_back((upward ? up : down)[a][from]);
        from = stepped(from, axis, upward ? 1 : axis.size - 1);
      }
    }
    return route;
  };
  return built;
}

}  // namespace orrery
