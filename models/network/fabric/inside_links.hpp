#pragma once
// What lies between the GPUs and the NICs of every node, as links next to those of the fabric: PCIe
// lanes, switches and sockets, which several GPUs may share on their way out. Only of nodes that
// state their cables (imported ones do): what a data sheet leaves open is taken to carry its NICs.
// Fabric links carry line rate, of which `efficiency` is bytes; those inside carry bytes alone, so
// that here they are 1 / efficiency as wide.
// A NIC's rate is what its own lanes let it have: none of them is narrower than one NIC, whatever
// an import takes them for. What several share is what several are. Leaves out messages between
// GPUs of one node, which a cost model prices.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/network/fabric/inside_paths.hpp"
#include "models/network/fabric/node_graph.hpp"

namespace orrery::models {

class InsideLinks {
 public:
  /// first  what the first link of node 0 is numbered, after those of the fabric
  InsideLinks(const hardware::Cluster& cluster, std::size_t first);

  /// Of all nodes; 0: nothing is known of them.
  std::size_t links() const { return per_node_ * nodes_; }
  Bandwidth capacity(std::size_t link) const;
  /// "node3/gpu0 to pcie1".
  std::string name(std::size_t link) const;
  std::optional<std::size_t> named(std::string_view name) const;
  /// The ways from every GPU to every NIC and back. Where nothing joins them, no links.
  InsidePaths paths() const;

 private:
  const hardware::Cluster& cluster_;
  NodeGraph graph_;
  std::size_t first_, nodes_, per_node_ = 0;
};

}  // namespace orrery::models
