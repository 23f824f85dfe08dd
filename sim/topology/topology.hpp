#pragma once
// What is wired to what: devices and switches, and between them links of one direction, each with
// a bandwidth and a latency. Switches forward at line rate: their own limits are those of their
// links. Builders of known shapes stand next to this file, one per shape.

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
  /// Errors  unknown vertex: ContractError; what a link may carry is the network's to refuse
  LinkId add_link(Vertex from, Vertex to, Bandwidth bandwidth, Time latency);
  Cable connect(Vertex one, Vertex other, Bandwidth bandwidth, Time latency);

  std::size_t vertices() const { return kinds_.size(); }
  VertexKind kind(Vertex vertex) const { return kinds_.at(index(vertex)); }
  /// In the order added, so that `links()[index(id)]` is the link `id`.
  const std::vector<Link>& links() const { return links_; }

  /// The sum of the latencies along a route.
  Time latency(const Route& route) const;
  /// Does each link begin where the one before it ends, from the first vertex to the second?
  bool joins(const Route& route, Vertex from, Vertex to) const;

  /// Adds all links to a network that has none: they keep their ids.
  /// Errors  the network has links: ContractError
  void install(Network& network) const;

 private:
  Vertex add(VertexKind kind);

  std::vector<VertexKind> kinds_;
  std::vector<Link> links_;
};

/// How a switch chooses among cables that lead on equally well.
enum class PathChoice : std::uint8_t { by_destination, by_hash, least_loaded };

/// A flow that wants a route.
struct FlowEnds {
  std::size_t from = 0;  // devices
  std::size_t to = 0;
  PathChoice choice = PathChoice::by_destination;
  std::uint64_t flow = 0;              // by_hash: tells flows of one pair apart
  std::span<const double> loads = {};  // least_loaded: of every link, in any one unit
};

/// The n-th of `count` cables for a flow at its `level`-th choice, by its two ends and its number.
/// The same on every machine: SplitMix64 (Steele, Lea & Flood 2014) of the four numbers.
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

  /// By destination.
  Route route(std::size_t from, std::size_t to) const;
};

}  // namespace orrery
