#pragma once
// The site of a step: ports and links between nodes, the placement of a job's ranks on them, and
// other jobs on the same links.

#include <cstdint>
#include <functional>
#include <vector>

#include "models/evaluation/priced.hpp"
#include "models/network/fabric/inside_paths.hpp"
#include "models/network/placement.hpp"
#include "sim/flows/link.hpp"

namespace orrery::models {

/// A rate in units of 2^-12 byte/s; an integer, so that shares never add up to more than a link.
/// Trunks of thousands of cables fit; wider ones count as 2^50 byte/s, which no traffic fills.
using WireRate = std::uint64_t;
WireRate wire_rate(Bandwidth bandwidth);
Bandwidth bandwidth_of(WireRate rate);

/// The device of each rank: node x gpus_per_node + GPU.
struct RankPlacement {
  std::vector<std::uint32_t> devices;
  std::uint32_t gpus_per_node = 1;
  AxisOrder order{};  // of mesh axes, by which expert groups are placed on ranks

  std::uint32_t node(std::size_t rank) const { return devices[rank] / gpus_per_node; }
  std::uint32_t gpu(std::size_t rank) const { return devices[rank] % gpus_per_node; }
};
/// Ranks fill the nodes in order.
RankPlacement contiguous(std::size_t ranks, std::uint32_t gpus_per_node);

/// From `at` on, a link has this bandwidth.
struct LinkChange {
  std::uint32_t link = 0;
  Time at{};
  Bandwidth bandwidth{};
};

/// Another job on the same links. Its first step begins with ours, each further one when the one
/// before has ended, until ours has ended.
struct ConcurrentJob {
  const PricedProgram* priced = nullptr;
  RankPlacement placement;     // as many GPUs per node as ours
  std::vector<double> speeds;  // as NetworkSite::speeds
};

/// Where a step runs: ports and links between nodes, ranks on them.
struct NetworkSite {
  std::vector<Bandwidth> links;  // bandwidth of each
  /// `route` becomes the links from one port to another, where ports are numbered node x
  /// ports_per_node + port of the node. `flow` tells flows between the same ports apart.
  std::function<void(std::size_t from, std::size_t to, std::uint64_t flow, Route& route)> route;
  std::uint32_t ports_per_node = 1;
  std::vector<std::uint32_t> nearest;  // port next to each GPU of a node; empty: divided evenly
  /// Paths between GPUs and ports, over links that are numbered after the others; empty where those
  /// are never full.
  InsidePaths inside;
  /// Messages first change to their destination's rail inside the node (PXN), and leave on that
  /// rail.
  bool by_rail = false;
  Bandwidth port{};  // line rate of one port
  RankPlacement placement;
  /// Port k of every node is on rail k, and all rails route equal flows alike: fabric_graph.hpp.
  bool rails_alike = false;
  std::vector<double> speeds;       // of each rank's GPU, 1 as priced; empty: all 1
  std::vector<LinkChange> changes;  // during the step
  std::vector<ConcurrentJob> others;

  /// The port next to a GPU; of several, the first.
  std::uint32_t port_of(std::uint32_t gpu) const {
    return nearest.empty() ? gpu * ports_per_node / placement.gpus_per_node : nearest[gpu];
  }
};

/// The same site with one of the other jobs alone on it.
NetworkSite site_of_other(const NetworkSite& site, std::size_t other);

}  // namespace orrery::models
