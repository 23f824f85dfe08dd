#pragma once
// The links that the ranks of one group send over: the fabric's links from NIC to NIC, and inside a
// node one link out of each GPU and one into it, at the rates that large messages reach. Ranks fill
// nodes in order; each uses the NIC of its local index. Leaves out the switches and sockets between
// a GPU and its NIC.

#include <optional>

#include "models/network/collectives/terms.hpp"
#include "models/network/fabric/fabric_graph.hpp"
#include "sim/flows/network.hpp"

namespace orrery::models::collectives {

/// Links and routes between the ranks of one group.
class RankNetwork {
 public:
  /// efficiency   share of its rate that each link of the fabric carries
  /// inside       rate of a GPU's links in its node; 0: no two ranks share a node
  RankNetwork(const CostCall& call, double efficiency, Bandwidth inside);

  /// Adds all links to an empty network, where they keep their ids.
  void install(Network& network) const;

  int ranks() const { return ranks_; }
  int nodes() const { return (ranks_ + gpus_ - 1) / gpus_; }
  int gpus() const { return gpus_; }
  /// NICs of a node that its ranks use.
  int nics() const { return nics_; }
  int node_of(int rank) const { return rank / gpus_; }

  /// Sets `route` to the links from one rank to another.
  void route(int from, int to, Route& route) const;
  /// The route from one node to another between their NICs of the same index.
  Route rail(int from, int to, int nic) const;
  std::size_t port_of(int rank) const;

  const FabricGraph& fabric() const { return *fabric_; }
  bool has_fabric() const { return fabric_.has_value(); }

 private:
  int ranks_, gpus_, nics_;
  double efficiency_;
  Bandwidth inside_;
  Time step_, message_;
  std::optional<FabricGraph> fabric_;
};

}  // namespace orrery::models::collectives
