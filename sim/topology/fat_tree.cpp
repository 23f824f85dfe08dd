#include "sim/topology/fat_tree.hpp"

#include <algorithm>
#include <cmath>

#include "sim/errors.hpp"

namespace orrery {
namespace {

/// A vertex of level l is (subtree, copy): the devices [subtree * M, (subtree + 1) * M) hang under
/// each of the W copies of it. Copy b has the parents b + c * W, c < w, above it.
struct TreeLevel {
  std::size_t below = 1;       // M_l: devices under one vertex of this level
  std::size_t copies = 1;      // W_l
  std::size_t parents = 0;     // w_{l+1}: cables up from each; 0 at the top
  std::size_t first_link = 0;  // the cables up, two links each: by subtree, copy, parent
};

struct FatTreeRouting {
  std::vector<TreeLevel> levels;
  std::size_t devices = 0;
  std::size_t links = 0;
};

LinkId cable_up(const TreeLevel& tier, std::size_t subtree, std::size_t copy, std::size_t parent) {
  const std::size_t cable = (subtree * tier.copies + copy) * tier.parents + parent;
  return LinkId{static_cast<std::uint32_t>(tier.first_link + 2 * cable)};
}

LinkId cable_down(LinkId up) {
  return LinkId{static_cast<std::uint32_t>(index(up) + 1)};
}

/// The cable up that the flow takes from `copy` of its source's subtree.
std::size_t chosen_parent(const TreeLevel& tier, std::size_t level, std::size_t copy,
                          const FlowEnds& flow) {
  if (tier.parents == 1) return 0;
  if (flow.choice == PathChoice::by_destination) return flow.to / tier.copies % tier.parents;
  if (flow.choice == PathChoice::by_hash) return hashed_choice(flow, level, tier.parents);
  std::size_t best = 0;
  double least = 0;
  for (std::size_t parent = 0; parent < tier.parents; ++parent) {
    const LinkId up = cable_up(tier, flow.from / tier.below, copy, parent);
    const LinkId down = cable_down(cable_up(tier, flow.to / tier.below, copy, parent));
    const double load = std::max(flow.loads[index(up)], flow.loads[index(down)]);
    if (parent == 0 || load < least) best = parent, least = load;
  }
  return best;
}

void climb_and_descend(const FatTreeRouting& routing, const FlowEnds& flow, Route& route) {
  ensure(flow.from < routing.devices && flow.to < routing.devices,
         "a route joins two devices of its topology");
  ensure(flow.choice != PathChoice::least_loaded || flow.loads.size() == routing.links,
         "the least loaded cable is chosen by the load of every link");
  std::size_t copy = 0;
  std::size_t level = 0;
  for (; flow.from / routing.levels[level].below != flow.to / routing.levels[level].below;
       ++level) {
    const TreeLevel& tier = routing.levels[level];
    ensure(tier.parents > 0, "no cable joins these two devices");
    const std::size_t parent = chosen_parent(tier, level, copy, flow);
    route.push_back(cable_up(tier, flow.from / tier.below, copy, parent));
    copy += parent * tier.copies;
  }
  // Descends by the same parents, recovered from `copy` level by level.
  for (; level > 0; --level) {
    const TreeLevel& tier = routing.levels[level - 1];
    const std::size_t parent = copy / tier.copies;
    copy %= tier.copies;
    route.push_back(cable_down(cable_up(tier, flow.to / tier.below, copy, parent)));
  }
}

void check(const FatTree& shape) {
  ensure(shape.devices >= 1 && !shape.levels.empty(), "a fat tree has devices and levels");
  ensure(shape.trees >= 1, "a forest has at least 1 tree");
  auto room = static_cast<std::size_t>(shape.trees);
  for (const FatTreeLevel& level : shape.levels) {
    ensure(level.children >= 1 && level.parents >= 1,
           "a level of a fat tree has at least 1 child and 1 parent");
    room *= static_cast<std::size_t>(level.children);
  }
  ensure(static_cast<std::size_t>(shape.devices) <= room, "a fat tree has too many devices");
}

/// Adds the switches of one level and their cables to the level below; `lower` then holds the new
/// switches.
TreeLevel add_level(const FatTreeLevel& level, TreeLevel& tier, Interconnect& built,
                    std::vector<Vertex>& lower) {
  tier.parents = static_cast<std::size_t>(level.parents);
  tier.first_link = built.topology.links().size();
  TreeLevel above;
  above.below = tier.below * static_cast<std::size_t>(level.children);
  above.copies = tier.copies * tier.parents;
  const std::size_t subtrees = (built.devices.size() + above.below - 1) / above.below;
  built.tiers.push_back({built.topology.vertices(), subtrees, above.copies});
  std::vector<Vertex> upper;
  for (std::size_t i = 0; i < subtrees * above.copies; ++i) {
    upper.push_back(built.topology.add_switch());
  }
  for (std::size_t i = 0; i < lower.size(); ++i) {
    const std::size_t subtree = i / tier.copies / static_cast<std::size_t>(level.children);
    for (std::size_t parent = 0; parent < tier.parents; ++parent) {
      const std::size_t copy = i % tier.copies + parent * tier.copies;
      built.topology.connect(lower[i], upper[subtree * above.copies + copy], level.bandwidth,
                             level.latency);
    }
  }
  lower = std::move(upper);
  return above;
}

FatTreeLevel leaf_level(const ClosFabric& fabric) {
  return {.children = fabric.devices_per_leaf,
          .parents = 1,
          .bandwidth = fabric.bandwidth,
          .latency = fabric.latency};
}

/// How switches of one level are cabled to those above.
struct Upward {
  int down = 0;  // cables down from each switch
  Bandwidth cable{};
  int up = 0;  // cables up from each switch; 0: derived from the oversubscription
  double oversubscription = 1;
  Uplinks form = Uplinks::cables;
};

/// The level above: each of its switches has `children` switches of the level below.
FatTreeLevel level_above(const Upward& below, int children, Time latency) {
  ensure(children >= 1, "a fabric has at least 1 device, 1 per leaf and 1 leaf per pod");
  ensure(below.oversubscription > 0, "an oversubscription is above 0");
  const double width = below.up > 0 ? below.up : below.down / below.oversubscription;
  const double cables = below.up > 0 ? below.up : std::max(1.0, std::floor(width));
  const bool trunk = below.form == Uplinks::trunk;
  return {.children = children,
          .parents = trunk ? 1 : static_cast<int>(cables),
          .bandwidth = below.cable * (trunk ? width : width / cables),
          .latency = latency};
}

FatTreeLevel spine_level(const ClosFabric& fabric, int children) {
  ensure(fabric.devices >= 1 && fabric.devices_per_leaf >= 1,
         "a fabric has at least 1 device, 1 per leaf and 1 leaf per pod");
  return level_above({.down = fabric.devices_per_leaf,
                      .cable = fabric.bandwidth,
                      .up = fabric.spines,
                      .oversubscription = fabric.oversubscription,
                      .form = fabric.uplinks},
                     children, fabric.latency);
}

int divided_up(int count, int by) {
  return (count + by - 1) / by;
}

}  // namespace

Interconnect fat_tree(const FatTree& shape) {
  check(shape);
  Interconnect built;
  for (int i = 0; i < shape.devices; ++i) built.devices.push_back(built.topology.add_device());
  FatTreeRouting routing;
  routing.levels.emplace_back();
  routing.devices = built.devices.size();
  std::vector<Vertex> lower = built.devices;
  for (const FatTreeLevel& level : shape.levels) {
    const TreeLevel above = add_level(level, routing.levels.back(), built, lower);
    routing.levels.push_back(above);
  }
  routing.links = built.topology.links().size();
  built.append = [routing](const FlowEnds& flow, Route& route) {
    climb_and_descend(routing, flow, route);
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
  const int leaves = divided_up(fabric.devices, fabric.devices_per_leaf);
  const int pods = divided_up(leaves, fabric.leaves_per_pod);
  const FatTreeLevel core = level_above({.down = fabric.leaves_per_pod,
                                         .cable = pod.bandwidth,
                                         .up = fabric.cores,
                                         .oversubscription = fabric.oversubscription_above,
                                         .form = fabric.uplinks},
                                        pods, fabric.latency);
  return {fabric.devices, {leaf_level(fabric), pod, core}};
}

}  // namespace orrery
