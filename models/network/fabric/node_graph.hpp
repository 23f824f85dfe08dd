#pragma once
// The inside of a node as links: GPUs, NICs, PCIe switches, sockets, NVLink. From the node's
// `cables` where it has them; else what its kind of scale-up network and its counts say: every GPU
// on a switch, or cabled to each other, and its NICs on a PCIe switch of its own. Which NIC serves
// which GPU. Leaves out copy engines, DMA through the host's memory and NVSwitches' own limits.

#include <optional>
#include <string>
#include <vector>

#include "hardware/cluster.hpp"
#include "sim/topology/topology.hpp"

namespace orrery::models {

/// NICs that serve a GPU: the node's `gpu_nics`, else an equal part, or one that several GPUs
/// share. Errors  no such GPU, a node without NICs: ContractError
std::vector<int> nics_of(const hardware::NodeType& node, int gpu);

class NodeGraph {
 public:
  explicit NodeGraph(const hardware::NodeType& node);

  const Topology& topology() const { return topology_; }
  const std::string& name(Vertex vertex) const { return names_.at(index(vertex)); }
  /// "gpu0 to pcie1".
  std::string name(LinkId link) const;
  std::optional<Vertex> named(const std::string& name) const;
  /// Whether the cables are the file's own, or follow from the node's kind and counts.
  bool stated() const { return stated_; }

  /// The fewest links between two GPUs, or a GPU and a NIC, through none of these; among as many
  /// links the widest. Nothing where nothing joins them.
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
