#include "models/network/fabric/shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/errors.hpp"
#include "sim/topology/dragonfly.hpp"
#include "sim/topology/fat_tree.hpp"
#include "sim/topology/torus.hpp"

namespace orrery::models {

using hardware::FabricKind;

namespace {

constexpr double most_links = 1 << 24;

void check_size(double links) {
  if (links > most_links) {
    throw InputError{"/cluster/fabric",
                     fmt::format("{:.3g} links; at most {:.0f} are simulated", links, most_links)};
  }
}

int divided_up(int count, int by) {
  return (count + by - 1) / by;
}

/// The fat tree over all ports, or in a rail-only fabric over those of one rail.
FatTree tree_over(const hardware::Cluster& cluster, int ports, int ports_per_leaf) {
  const auto& fabric = cluster.fabric;
  const bool sprayed = fabric.routing == hardware::Routing::spray;
  const ClosFabric clos{
      .devices = ports,
      .devices_per_leaf = ports_per_leaf,
      .leaves_per_pod = fabric.tree.leaves_per_pod,
      .oversubscription = fabric.oversubscription,
      .oversubscription_above = fabric.tree.oversubscription_above,
      .spines = fabric.tree.spines,
      .cores = fabric.tree.cores,
      .uplinks = sprayed ? Uplinks::trunk : Uplinks::cables,
      .bandwidth = cluster.nic_bandwidth(),
      .latency = fabric.hop_latency.value_or(Time{}),
  };
  if (fabric.tree.levels == 1) {
    return {ports, {{.children = ports, .bandwidth = clos.bandwidth, .latency = clos.latency}}};
  }
  const double leaves = divided_up(ports, ports_per_leaf);
  const double spines =
      fabric.tree.spines > 0 ? fabric.tree.spines : ports_per_leaf / fabric.oversubscription;
  check_size(2 * leaves * std::max(1.0, spines) * (fabric.tree.levels - 1));
  return fabric.tree.levels == 2 ? two_level(clos) : three_level(clos);
}

Interconnect tree_of(const hardware::Cluster& cluster) {
  const int nics = cluster.node.nics;
  const int per_leaf = cluster.fabric.nodes_per_leaf;
  if (cluster.fabric.kind == FabricKind::fat_tree) {
    return fat_tree(tree_over(cluster, cluster.nodes * nics, per_leaf * nics));
  }
  const int places = divided_up(cluster.nodes, per_leaf) * per_leaf;  // of one rail
  check_size(2.0 * places * nics);
  if (cluster.fabric.kind == FabricKind::rail_optimised) {
    return fat_tree(tree_over(cluster, places * nics, per_leaf));
  }
  FatTree rails = tree_over(cluster, places, per_leaf);
  rails.devices *= nics;
  rails.trees = nics;
  return fat_tree(rails);
}

Interconnect dragonfly_of(const hardware::Cluster& cluster) {
  const auto& fabric = cluster.fabric;
  const Bandwidth rate = cluster.nic_bandwidth();
  const Time hop = fabric.hop_latency.value_or(Time{});
  const int routers = fabric.direct.routers_per_group;
  const int groups = divided_up(divided_up(cluster.nodes, fabric.nodes_per_leaf), routers);
  const double cables = 2.0 * fabric.nodes_per_leaf * cluster.node.nics + routers +
                        fabric.direct.global_cables;  // links out of one router
  check_size(static_cast<double>(groups) * routers * cables);
  return dragonfly({.groups = groups,
                    .routers = routers,
                    .devices_per_router = fabric.nodes_per_leaf * cluster.node.nics,
                    .global_per_router = fabric.direct.global_cables,
                    .device_bandwidth = rate,
                    .local_bandwidth = rate,
                    .global_bandwidth = rate,
                    .latency = hop,
                    .global_latency = hop});
}

Interconnect torus_of(const hardware::Cluster& cluster) {
  const auto& fabric = cluster.fabric;
  const Bandwidth rate = cluster.nic_bandwidth();
  double routers = 1;
  for (const int size : fabric.direct.dimensions) routers *= size;
  const int devices = fabric.nodes_per_leaf * cluster.node.nics;
  check_size(2 * routers * (devices + static_cast<double>(fabric.direct.dimensions.size())));
  return torus({.dimensions = fabric.direct.dimensions,
                .border = fabric.kind == FabricKind::torus ? Border::wraps : Border::ends,
                .devices_per_router = devices,
                .device_bandwidth = rate,
                .bandwidth = rate * static_cast<double>(fabric.direct.cables),
                .latency = fabric.hop_latency.value_or(Time{})});
}

}  // namespace

Interconnect fabric_shape(const hardware::Cluster& cluster) {
  check_size(2.0 * cluster.nodes * cluster.node.nics);
  if (hardware::is_tree(cluster.fabric.kind)) return tree_of(cluster);
  return cluster.fabric.kind == FabricKind::dragonfly ? dragonfly_of(cluster) : torus_of(cluster);
}

}  // namespace orrery::models
