#pragma once
// Where steps run: the ports and links between nodes, the ranks of a job on them, and other jobs
// next to it.

#include <cstdint>
#include <functional>
#include <vector>

#include "models/evaluation/priced.hpp"
#include "models/network/fabric/inside_paths.hpp"
#include "models/network/placement.hpp"
#include "sim/flows/link.hpp"

namespace orrery::models {

/// 2^-12 byte/s: shares of whole numbers never add up to more than a link. Trunks of thousands of
/// cables fit; what is wider than 2^50 byte/s counts as that, which nothing fills.
using WireRate = std::uint64_t;
WireRate wire_rate(Bandwidth bandwidth);
Bandwidth bandwidth_of(WireRate rate);

/// Where ranks run: by rank, node x gpus_per_node + GPU.
struct RankPlacement {
  std::vector<std::uint32_t> devices;
  std::uint32_t gpus_per_node = 1;
  AxisOrder order{};  // by which experts are folded over ranks

  std::uint32_t node(std::size_t rank) const { return devices[rank] / gpus_per_node; }
  std::uint32_t gpu(std::size_t rank) const { return devices[rank] % gpus_per_node; }
};
/// Ranks fill the nodes in order.
RankPlacement contiguous(std::size_t ranks, std::uint32_t gpus_per_node);

/// From `at` on, a link carries this.
struct LinkChange {
  std::uint32_t link = 0;
  Time at{};
  Bandwidth bandwidth{};
};

/// Another job on the same links. Its first step begins with ours, each further one where the one
/// before has ended, until ours has.
struct NeighbourJob {
  const PricedProgram* priced = nullptr;
  RankPlacement placement;     // as many GPUs per node as ours
  std::vector<double> speeds;  // as NetworkSite::speeds
};

/// Where a step runs: ports and links between nodes, ranks on them.
struct NetworkSite {
  std::vector<Bandwidth> links;  // what each carries
  /// `route` becomes the links from one port to another, port = node x ports_per_node + port there,
  /// of a flow whose number tells it apart from others between them.
  std::function<void(std::size_t from, std::size_t to, std::uint64_t flow, Route& route)> route;
  std::uint32_t ports_per_node = 1;
  std::vector<std::uint32_t> nearest;  // port, of each GPU of a node; empty: ports in equal parts
  /// Between GPUs and ports, as links among the others; empty where they are never full.
  InsidePaths inside;
  /// Messages leave by their destination's rail, which they reach inside the node.
  bool by_rail = false;
  Bandwidth port{};  // line rate of one
  RankPlacement placement;
  /// Port k of every node is on rail k, and rails do the same with the same flows:
  /// fabric_graph.hpp.
  bool rails_alike = false;
  std::vector<double> speeds;       // of each rank's GPU, 1 as priced; empty: all 1
  std::vector<LinkChange> changes;  // during the step
  std::vector<NeighbourJob> others;

  /// The port next to a GPU; of several, the first.
  std::uint32_t port_of(std::uint32_t gpu) const {
    return nearest.empty() ? gpu * ports_per_node / placement.gpus_per_node : nearest[gpu];
  }
};

/// The same as one of those others sees it, alone.
NetworkSite site_of_other(const NetworkSite& site, std::size_t other);

}  // namespace orrery::models
