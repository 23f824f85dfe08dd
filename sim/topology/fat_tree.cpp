#include "sim/topology/fat_tree.hpp"

#include <algorithm>
#include <cmath>

#include "sim/errors.hpp"

namespace orrery {
namespace {

/// A vertex of level l is (subtree, copy): the devices [subtree * M, (subtree + 1) * M) hang under
/// each of the W copies of it. Copy b has the parents b + c * W, c < w, above it.
struct Rung {
  std::size_t below = 1;       // M_l: devices under one vertex of this level
  std::size_t copies = 1;      // W_l
  std::size_t parents = 0;     // w_{l+1}: cables up from each; 0 at the top
  std::size_t first_link = 0;  // the cables up, two links each: by subtree, copy, parent
};

using Ladder = std::vector<Rung>;

LinkId cable_up(const Rung& rung, std::size_t subtree, std::size_t copy, std::size_t parent) {
  const std::size_t cable = (subtree * rung.copies + copy) * rung.parents + parent;
  return LinkId{static_cast<std::uint32_t>(rung.first_link + 2 * cable)};
}

LinkId cable_down(LinkId up) {
  return LinkId{static_cast<std::uint32_t>(index(up) + 1)};
}

Route climb_and_descend(const Ladder& ladder, std::size_t from, std::size_t to) {
  Route up;
  Route down;
  std::size_t copy = 0;
  for (std::size_t l = 0; from / ladder[l].below != to / ladder[l].below; ++l) {
    const Rung& rung = ladder[l];
    const std::size_t parent = to / rung.copies % rung.parents;
    up.push_back(cable_up(rung, from / rung.below, copy, parent));
    down.push_back(cable_down(cable_up(rung, to / rung.below, copy, parent)));
    copy += parent * rung.copies;
  }
  up.insert(up.end(), down.rbegin(), down.rend());
  return up;
}

void check(const FatTree& shape) {
  ensure(shape.devices >= 1 && !shape.levels.empty(), "a fat tree has devices and levels");
  std::size_t room = 1;
  for (const FatTreeLevel& level : shape.levels) {
    ensure(level.children >= 1 && level.parents >= 1,
           "a level of a fat tree has at least 1 child and 1 parent");
    room *= static_cast<std::size_t>(level.children);
  }
  ensure(static_cast<std::size_t>(shape.devices) <= room, "a fat tree has too many devices");
}

FatTreeLevel leaf_level(const ClosFabric& fabric) {
  return {.children = fabric.devices_per_leaf,
          .parents = 1,
          .bandwidth = fabric.bandwidth,
          .latency = fabric.latency};
}

/// The level above the leaves, `children` of them under each switch.
FatTreeLevel spine_level(const ClosFabric& fabric, int children) {
  ensure(fabric.devices >= 1 && fabric.devices_per_leaf >= 1 && children >= 1,
         "a fabric has at least 1 device, 1 per leaf and 1 leaf per pod");
  ensure(fabric.oversubscription > 0, "an oversubscription is above 0");
  const double width = fabric.devices_per_leaf / fabric.oversubscription;  // in devices' links
  const double spines = std::max(1.0, std::floor(width));
  return {.children = children,
          .parents = static_cast<int>(spines),
          .bandwidth = fabric.bandwidth * (width / spines),
          .latency = fabric.latency};
}

int divided_up(int count, int by) {
  return (count + by - 1) / by;
}

}  // namespace

Interconnect fat_tree(const FatTree& shape) {
  check(shape);
  const auto devices = static_cast<std::size_t>(shape.devices);
  Interconnect built;
  Ladder ladder(1);
  std::vector<Vertex> lower;
  for (std::size_t i = 0; i < devices; ++i) lower.push_back(built.topology.add_device());
  built.devices = lower;
  for (const FatTreeLevel& level : shape.levels) {
    Rung& rung = ladder.back();
    rung.parents = static_cast<std::size_t>(level.parents);
    rung.first_link = built.topology.links().size();
    Rung above;
    above.below = rung.below * static_cast<std::size_t>(level.children);
    above.copies = rung.copies * rung.parents;

    std::vector<Vertex> upper;
    const std::size_t subtrees = (devices + above.below - 1) / above.below;
    for (std::size_t i = 0; i < subtrees * above.copies; ++i) {
      upper.push_back(built.topology.add_switch());
    }
    for (std::size_t i = 0; i < lower.size(); ++i) {
      const std::size_t subtree = i / rung.copies / static_cast<std::size_t>(level.children);
      for (std::size_t parent = 0; parent < rung.parents; ++parent) {
        const std::size_t copy = i % rung.copies + parent * rung.copies;
        built.topology.connect(lower[i], upper[subtree * above.copies + copy], level.bandwidth,
                               level.latency);
      }
    }
    lower = std::move(upper);
    ladder.push_back(above);
  }
  built.route = [ladder, devices](std::size_t from, std::size_t to) {
    ensure(from < devices && to < devices, "a route joins two devices of its topology");
    return climb_and_descend(ladder, from, to);
  };
  return built;
}

FatTree two_level(const ClosFabric& fabric) {
  const FatTreeLevel leaf = leaf_level(fabric);
  ensure(leaf.children >= 1, "a fabric has at least 1 device, 1 per leaf and 1 leaf per pod");
  const int leaves = divided_up(fabric.devices, leaf.children);
  return {fabric.devices, {leaf, spine_level(fabric, leaves)}};
}

FatTree three_level(const ClosFabric& fabric) {
  const FatTreeLevel pod = spine_level(fabric, fabric.leaves_per_pod);
  FatTreeLevel core = pod;
  core.children = divided_up(fabric.devices, fabric.devices_per_leaf * fabric.leaves_per_pod);
  core.parents = fabric.leaves_per_pod;
  return {fabric.devices, {leaf_level(fabric), pod, core}};
}

Interconnect rail_optimised(const RailFabric& fabric) {
  ensure(fabric.nodes >= 1 && fabric.rails >= 1 && fabric.nodes_per_leaf >= 1,
         "a rail fabric has at least 1 node, 1 rail and 1 node per leaf");
  const int units = divided_up(fabric.nodes, fabric.nodes_per_leaf);
  Interconnect tree = fat_tree(two_level({.devices = units * fabric.rails * fabric.nodes_per_leaf,
                                          .devices_per_leaf = fabric.nodes_per_leaf,
                                          .oversubscription = fabric.oversubscription,
                                          .bandwidth = fabric.bandwidth,
                                          .latency = fabric.latency}));
  std::vector<std::size_t> places;  // of each port, in the tree
  std::vector<Vertex> ports;
  for (int node = 0; node < fabric.nodes; ++node) {
    for (int rail = 0; rail < fabric.rails; ++rail) {
      const int leaf = node / fabric.nodes_per_leaf * fabric.rails + rail;
      places.push_back(
          static_cast<std::size_t>(leaf * fabric.nodes_per_leaf + node % fabric.nodes_per_leaf));
      ports.push_back(tree.devices[places.back()]);
    }
  }
  const auto route = [places, in_tree = tree.route](std::size_t from, std::size_t to) {
    ensure(from < places.size() && to < places.size(), "a route joins two devices of its topology");
    return in_tree(places[from], places[to]);
  };
  return {std::move(tree.topology), std::move(ports), route};
}

}  // namespace orrery
