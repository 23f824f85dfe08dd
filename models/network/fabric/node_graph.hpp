#pragma once
// The inside of a node as a graph of links: GPUs, NICs, PCIe switches, sockets, NVLink; and which
// NIC serves which GPU. Taken from the node's `cables` if it states them; otherwise built from its
// kind of scale-up network and its counts: every GPU on a switch or cabled to each other, and its
// NICs on a PCIe switch of its own. Leaves out copy engines, DMA through host memory and the
// NVSwitches' own limits.

#include <optional>
#include <string>
#include <vector>

#include "hardware/cluster/cluster.hpp"
#include "sim/topology/topology.hpp"

namespace orrery::models {

/// NICs that serve a GPU: the node's `gpu_nics`, otherwise an equal part, or one that several GPUs
/// share.
/// Errors  no such GPU, a node without NICs: ContractError
std::vector<int> nics_of(const hardware::NodeType& node, int gpu);

class NodeGraph {
 public:
  explicit NodeGraph(const hardware::NodeType& node);

  const Topology& topology() const { return topology_; }
  const std::string& name(Vertex vertex) const { return names_.at(index(vertex)); }
  /// "gpu0 to pcie1".
  std::string name(LinkId link) const;
  std::optional<Vertex> named(const std::string& name) const;
  /// Does the node's file state its cables?
  bool stated() const { return stated_; }

  /// The shortest path between two GPUs, or a GPU and a NIC, that passes through no other GPU or
  /// NIC; among equally short ones the widest. Nothing where nothing connects them.
  std::optional<Route> route(Vertex from, Vertex to) const;

 private:
  Vertex vertex(const std::string& name);
  void connect(const std::string& one, const std::string& other, Bandwidth bandwidth);
  void add_usual(const hardware::NodeType& node);

  Topology topology_;
  std::vector<std::string> names_;
  bool stated_ = false;
};

}  // namespace orrery::models
