#pragma once
// A network graph: devices and switches, joined by one-directional links, each with a bandwidth and
// a latency. Switches forward at line rate: only their links limit them. Builders of known shapes
// are in this folder, one file per shape.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/flows/link.hpp"
#include "sim/flows/network.hpp"
#include "sim/quantity.hpp"

namespace orrery {

enum class VertexKind : std::uint8_t { device, packet_switch };

/// Vertices are numbered from 0 in the order added.
enum class Vertex : std::uint32_t {};

constexpr std::size_t index(Vertex vertex) {
  return static_cast<std::size_t>(vertex);
}

class Topology {
 public:
  struct Link {
    Vertex from;
    Vertex to;
    Bandwidth bandwidth;
    Time latency;
  };
  /// The two directions of one cable.
  struct Cable {
    LinkId there;
    LinkId back;
  };

  Vertex add_device() { return add(VertexKind::device); }
  Vertex add_switch() { return add(VertexKind::packet_switch); }
  /// Errors  unknown vertex: ContractError; `Network` checks bandwidth and latency
  LinkId add_link(Vertex from, Vertex to, Bandwidth bandwidth, Time latency);
  Cable connect(Vertex one, Vertex other, Bandwidth bandwidth, Time latency);

  std::size_t vertices() const { return kinds_.size(); }
  VertexKind kind(Vertex vertex) const { return kinds_.at(index(vertex)); }
  /// In the order added, so that `links()[index(id)]` is the link `id`.
  const std::vector<Link>& links() const { return links_; }

  /// The sum of the latencies along a route.
  Time latency(const Route& route) const;
  /// True if each link begins where the one before it ends, from the first vertex to the second.
  bool joins(const Route& route, Vertex from, Vertex to) const;

  /// Adds all links to a network that has none: they keep their ids.
  /// Errors  the network has links: ContractError
  void install(Network& network) const;

 private:
  Vertex add(VertexKind kind);

  std::vector<VertexKind> kinds_;
  std::vector<Link> links_;
};

/// How a switch chooses among equal-cost cables.
enum class PathChoice : std::uint8_t { by_destination, by_hash, least_loaded };

/// The endpoints of a flow, and how its route is chosen.
struct FlowEnds {
  std::size_t from = 0;  // devices
  std::size_t to = 0;
  PathChoice choice = PathChoice::by_destination;
  std::uint64_t flow = 0;              // by_hash: distinguishes flows between the same two devices
  std::span<const double> loads = {};  // least_loaded: of every link, in any one unit
};

/// Which of `count` cables a flow takes at its `level`-th choice: a hash of its endpoints, its
/// number and the level, the same on every machine: SplitMix64 (Steele, Lea & Flood 2014) of the
/// four numbers.
std::size_t hashed_choice(const FlowEnds& flow, std::size_t level, std::size_t count);

/// Switches of one kind: `groups` times `each` of them, numbered group by group from `first`.
struct Tier {
  std::size_t first = 0;
  std::size_t groups = 0;
  std::size_t each = 0;
};

/// A topology of a known shape. Its devices are the vertices from 0; where a device has one cable,
/// the links 2 d and 2 d + 1 are device d's, out and in.
struct Interconnect {
  Topology topology;
  std::vector<Vertex> devices;
  std::vector<Tier> tiers;  // switches, from the devices up
  /// Appends the links from one device to another; none from a device to itself.
  std::function<void(const FlowEnds& flow, Route& route)> append;

  /// The route chosen by destination.
  Route route(std::size_t from, std::size_t to) const;
};

}  // namespace orrery
