#pragma once
// How many flows one group puts on every link, by the pattern of its collective. All flows of a
// group have one rate: a ring, a tree and a uniform all-to-all are each as fast as their slowest
// edge.
//   pair       from the first node to the second
//   ring       from every node to the next, in the order in which members are met; stars, which no
//              lowering uses, count as rings
//   tree       to parents and children in NCCL's two trees, half of the channels in each; groups
//              over several stages, which sum norms, use a ring instead
//   all_pairs  from every member to every member on another node
// Where the links between GPUs and ports are known, a flow also crosses those of the members that
// send and receive it; where messages change rails inside nodes (PXN), those of the GPU next to the
// port by which it leaves. Leaves out that flows of an all-to-all under one leaf switch may end
// before those that cross leaves.

#include <cstdint>
#include <span>
#include <vector>

#include "models/evaluation/traffic/traffic.hpp"

namespace orrery::models::traffic {

/// Flows from one of a group's nodes to another; `from` and `to` are positions in its order of
/// nodes.
struct NodeEdge {
  std::uint32_t from = 0, to = 0, flows = 0;
};

/// The edges over which a pattern sends.
/// flows   of a ring or tree on each port, of a pair on its edge
/// Source  the trees: NCCL 2.30, src/graph/trees.cc
std::vector<NodeEdge> edges_of(TrafficPattern pattern, std::uint32_t nodes, std::uint32_t flows);

class FlowCounter {
 public:
  explicit FlowCounter(const NetworkSite& site) : site_{site} {}

  /// A member of the group, and the port next to its GPU; of several, the first.
  struct End {
    std::uint32_t node = 0, port = 0, gpu = 0;
  };
  /// Counts the flows of one channel or group; `tag` tells it apart from others where routes are
  /// chosen by hash. No flow crosses a link where all members are on one node.
  void count(std::span<const End> members, TrafficPattern pattern, std::uint32_t flows,
             std::uint64_t tag);

  const std::vector<LinkFlows>& found() const { return found_; }  // links of the site, ascending
  /// Most flows that enter or leave one port.
  std::uint32_t busiest() const;

 private:
  /// A GPU, and the port by which it sends and receives.
  struct NodeExit {
    std::uint32_t port = 0, gpu = 0;
  };
  enum class Direction : std::uint8_t { out, in };

  void collect_nodes(std::span<const End> members);
  std::uint32_t ports_of_rank() const;
  void choose_ports();
  void spread_ports();
  void add_pairs(std::size_t from, std::size_t to, std::uint32_t flows);
  void add_flow(std::size_t out, std::size_t in, std::uint32_t flows);
  void add_edge(const NodeEdge& edge, std::size_t exit);
  void add_pairs_inside(std::size_t from, std::size_t to, std::uint32_t flows);
  void add_inside(std::uint32_t node, NodeExit exit, Direction direction, std::uint32_t flows);
  NodeExit next_to(std::uint32_t port) const;
  void sum_up();

  const NetworkSite& site_;
  Route route_;
  std::uint64_t tag_ = 0;
  std::vector<std::uint32_t> nodes_;
  std::vector<std::uint32_t> seen_;           // by node: its position in nodes_, from 1
  std::vector<std::vector<NodeExit>> exits_;  // by position in nodes_
  std::vector<std::uint32_t> at_port_;        // flows of one node's members to one port
  std::vector<LinkFlows> found_;
  std::vector<std::uint32_t> cables_;  // links next to ports, by which flows leave or enter
};

}  // namespace orrery::models::traffic
