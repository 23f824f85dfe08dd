#pragma once
// The network between the nodes of a cluster as links: their capacities and names, and the route of
// a flow. A port is one NIC. Packet spraying is modelled as ideal: all cables up from a switch form
// one trunk, so that every route is a list of whole links. Leaves out switch buffers, failed cables
// (model one as a link of low rate), Valiant routing, and links inside a node.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/cluster/cluster.hpp"
#include "sim/topology/topology.hpp"

namespace orrery::models {

/// One flow between two ports.
struct PortFlow {
  std::size_t from = 0;
  std::size_t to = 0;
  std::uint64_t flow = 0;              // ecmp: distinguishes flows of one pair in the hash
  std::span<const double> loads = {};  // adaptive: current load of every link, in any common unit
};

/// A cluster's fabric, its routing and its names.
class FabricGraph {
 public:
  /// Errors  a cluster without a fabric or NICs: ContractError; more than 2^24 links: InputError
  explicit FabricGraph(const hardware::Cluster& cluster);

  /// Ports are numbered node by node.
  std::size_t ports() const { return nodes_ * nics_; }
  std::size_t port(std::size_t node, std::size_t nic) const { return node * nics_ + nic; }

  std::size_t links() const { return built_.topology.links().size(); }
  Bandwidth capacity(LinkId link) const { return built_.topology.links()[index(link)].bandwidth; }
  /// The fabric's hop_latency; 0 where it has none, and a message then costs the latency class's
  /// `network` constant.
  Time latency(LinkId link) const { return built_.topology.links()[index(link)].latency; }
  /// The link from a port's NIC to its switch, and back.
  LinkId out_of(std::size_t port) const { return device_link(place(port), 0); }
  LinkId into(std::size_t port) const { return device_link(place(port), 1); }

  /// Leaf switches (routers, of a dragonfly, torus or mesh) are numbered from 0.
  std::size_t leaves() const { return built_.tiers.front().groups * built_.tiers.front().each; }
  std::size_t leaf_of(std::size_t port) const { return place(port) / places_per_leaf_; }

  hardware::Routing routing() const { return routing_; }
  /// Does a route depend only on its destination and the source's leaf? True unless ecmp or
  /// adaptive routing has a choice.
  bool by_destination() const { return choice_ == PathChoice::by_destination; }
  /// Sets `route` to the links that the flow crosses, in order; empty from a port to itself.
  /// Errors  no such port, two rails of a rail-only fabric: ContractError; adaptive without the
  ///         loads of all links: InputError
  void route(const PortFlow& flow, Route& route) const;
  /// The same from any port of a leaf, without that port's own link; only where `by_destination`.
  /// Serves to count the flows of an all-to-all that end at a port leaf by leaf.
  void route_from_leaf(std::size_t leaf, std::size_t to, Route& route) const;
  /// Is there a route between two ports? In a rail-only fabric only within one rail.
  bool joined(std::size_t from, std::size_t to) const;
  /// Do flows within one rail share no link with those of another rail, and are all rails wired
  /// alike? Then moving traffic to another rail changes no rate.
  bool rails_alike() const { return rails_alike_; }

  /// "node3/nic1 to rail1/leaf0", "leaf2 to spine5", "spine5 to leaf2", "leaf2 to spines"; where
  /// several cables join two routers of a dragonfly, all but the first end in ", cable 2".
  std::string name(LinkId link) const;
  std::string name(Vertex vertex) const;
  /// The link or switch of that name, if there is one.
  std::optional<LinkId> link_named(std::string_view name) const;
  std::optional<Vertex> switch_named(std::string_view name) const;
  /// All links into and out of a switch or port.
  std::vector<LinkId> links_of(Vertex vertex) const;

  const Topology& topology() const { return built_.topology; }
  const std::vector<Tier>& tiers() const { return built_.tiers; }

 private:
  static LinkId device_link(std::size_t place, std::size_t back) {
    return LinkId{static_cast<std::uint32_t>(2 * place + back)};
  }
  void check(std::size_t port) const;
  bool are_rails_alike(int leaves_per_pod) const;
  std::size_t place(std::size_t port) const;
  std::size_t port_at(std::size_t place) const;
  std::string switch_name(std::size_t tier, std::size_t group, std::size_t copy) const;

  hardware::FabricKind kind_;
  hardware::Routing routing_;
  hardware::DirectShape direct_;
  std::size_t nodes_, nics_;
  std::size_t nodes_per_leaf_;
  std::size_t places_per_leaf_ = 1;
  std::size_t places_per_rail_ = 0;  // of rail-only fabrics
  PathChoice choice_ = PathChoice::by_destination;
  Interconnect built_;
  bool rails_alike_ = false;
};

/// Latency of a message over `cables` links: the latency class's constant, corrected by hop_latency
/// (if the fabric has one) for the difference from the longest path.
Time message_latency(const hardware::Cluster& cluster, std::size_t cables);

}  // namespace orrery::models
