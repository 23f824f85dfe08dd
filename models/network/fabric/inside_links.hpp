#pragma once
// The links between GPUs and NICs inside every node, numbered after those of the fabric: PCIe
// lanes, switches and sockets, which several GPUs may share on their way out. Only for nodes that
// state their cables (imported ones do); other nodes are assumed not to limit their NICs.
// Capacities of fabric links are line rates, of which the share `efficiency` carries payload; those
// inside a node are payload rates, so they are divided by `efficiency` here. No link is narrower
// than one NIC, whatever rate an import states. Leaves out messages between GPUs of one node, which
// a cost model prices.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/network/fabric/inside_paths.hpp"
#include "models/network/fabric/node_graph.hpp"

namespace orrery::models {

/// The links inside all nodes of a cluster.
class InsideLinks {
 public:
  /// first  number of node 0's first link, after those of the fabric
  InsideLinks(const hardware::Cluster& cluster, std::size_t first);

  /// Number of links in all nodes; 0: not known.
  std::size_t links() const { return per_node_ * nodes_; }
  Bandwidth capacity(std::size_t link) const;
  /// "node3/gpu0 to pcie1".
  std::string name(std::size_t link) const;
  std::optional<std::size_t> named(std::string_view name) const;
  /// The links from every GPU to every NIC and back; an empty list where nothing connects them.
  InsidePaths paths() const;

 private:
  const hardware::Cluster& cluster_;
  NodeGraph graph_;
  std::size_t first_, nodes_, per_node_ = 0;
};

}  // namespace orrery::models
