#pragma once
// The network between the nodes of a cluster as links: what each carries, what it is called, and
// which of them a flow crosses. A port is one NIC. Packets that are sprayed are modelled at their
// ideal: all cables up from a switch are one trunk, so that every route is a list of whole links.
// Leaves out switches' buffers, cables that failed (a link of low rate stands for one), Valiant's
// detours, and what lies inside a node.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/cluster.hpp"
#include "sim/topology/topology.hpp"

namespace orrery::models {

/// One flow between two ports.
struct PortFlow {
  std::size_t from = 0;
  std::size_t to = 0;
  std::uint64_t flow = 0;              // ecmp: tells flows of one pair apart
  std::span<const double> loads = {};  // adaptive: of every link now, in any one unit
};

class FabricGraph {
 public:
  /// Errors  a cluster without a fabric or NICs: ContractError; more than 2^24 links: InputError
  explicit FabricGraph(const hardware::Cluster& cluster);

  /// Ports are numbered node by node.
  std::size_t ports() const { return nodes_ * nics_; }
  std::size_t port(std::size_t node, std::size_t nic) const { return node * nics_ + nic; }

  std::size_t links() const { return built_.topology.links().size(); }
  Bandwidth capacity(LinkId link) const { return built_.topology.links()[index(link)].bandwidth; }
  /// hop_latency where the fabric has one, else 0: then a message costs the class's `network`.
  Time latency(LinkId link) const { return built_.topology.links()[index(link)].latency; }
  /// A port's own cable, out of its NIC and into it.
  LinkId out_of(std::size_t port) const { return device_link(place(port), 0); }
  LinkId into(std::size_t port) const { return device_link(place(port), 1); }

  /// Leaf switches (routers, of a dragonfly, torus or mesh) are numbered from 0.
  std::size_t leaves() const { return built_.tiers.front().groups * built_.tiers.front().each; }
  std::size_t leaf_of(std::size_t port) const { return place(port) / places_per_leaf_; }

  hardware::Routing routing() const { return routing_; }
  /// Whether a route depends on its destination and the source's leaf only: always, but by ecmp
  /// and adaptive where there is a choice.
  bool by_destination() const { return choice_ == PathChoice::by_destination; }
  /// `route` becomes the links that the flow crosses, in order; empty from a port to itself.
  /// Errors  a port that is none; two rails that never meet: ContractError; adaptive without the
  ///         loads of all links: InputError
  void route(const PortFlow& flow, Route& route) const;
  /// The same for any port of a leaf, without the link out of it; only where `by_destination`.
  /// All of an all-to-all that ends at a port is counted leaf by leaf with it.
  void route_from_leaf(std::size_t leaf, std::size_t to, Route& route) const;
  /// Whether any route joins two ports: on rails that never meet, only ports of one rail.
  bool joined(std::size_t from, std::size_t to) const;
  /// Whether flows from ports of one rail to ports of the same rail share no link with another
  /// rail's, and all rails do the same: a shift of the rail then leaves every rate as it was.
  bool rails_alike() const { return rails_alike_; }

  /// "node3/nic1 to rail1/leaf0", "leaf2 to spine5", "spine5 to leaf2", "leaf2 to spines"; where
  /// several cables join two routers of a dragonfly, all but the first end in ", cable 2".
  std::string name(LinkId link) const;
  std::string name(Vertex vertex) const;
  /// The link or switch of that name; nothing if there is none.
  std::optional<LinkId> link_named(std::string_view name) const;
  std::optional<Vertex> switch_named(std::string_view name) const;
  /// All links into and out of it.
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
  std::size_t places_per_rail_ = 0;  // where rails never meet
  PathChoice choice_ = PathChoice::by_destination;
  Interconnect built_;
  bool rails_alike_ = false;
};

/// What a message over so many cables waits before its first byte: the class's constant, with the
/// wire of its own path where the fabric has a hop_latency.
Time message_latency(const hardware::Cluster& cluster, std::size_t cables);

}  // namespace orrery::models
