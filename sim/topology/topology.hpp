#pragma once
// What is wired to what: devices and switches, and between them links of one direction, each with
// a bandwidth and a latency. Switches forward at line rate: their own limits are those of their
// links. Builders of known shapes stand next to this file, one per shape.

#include <boost/graph/adjacency_list.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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

struct VertexProperties {
  VertexKind kind = VertexKind::device;
};
struct LinkProperties {
  LinkId id{};
  Bandwidth bandwidth{};
  Time latency{};
};

/// Moves, does not copy.
class Topology {
 public:
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, VertexProperties,
                                      LinkProperties>;
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

  std::size_t vertices() const { return boost::num_vertices(*graph_); }
  VertexKind kind(Vertex vertex) const { return (*graph_)[index(vertex)].kind; }
  /// In the order added, so that `links()[index(id)]` is the link `id`.
  const std::vector<Link>& links() const { return links_; }
  /// For any algorithm of Boost.Graph; a vertex descriptor is the vertex's number.
  const Graph& graph() const { return *graph_; }

  /// The sum of the latencies along a route.
  Time latency(const Route& route) const;
  /// Does each link begin where the one before it ends, from the first vertex to the second?
  bool joins(const Route& route, Vertex from, Vertex to) const;

  /// Adds all links to a network that has none: they keep their ids.
  /// Errors  the network has links: ContractError
  void install(Network& network) const;

 private:
  Vertex add(VertexKind kind);

  // Held apart: a graph of Boost.Graph 1.74 copies where it is moved.
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  std::vector<Link> links_;
};

/// The route with the fewest links; among several, the one found first by a breadth-first search
/// that tries links in the order added. Every vertex forwards. Nothing if there is none.
std::optional<Route> shortest_route(const Topology& topology, Vertex from, Vertex to);

/// A topology of a known shape: its devices by number, and the route from one to another (by
/// number; empty from a device to itself).
struct Interconnect {
  Topology topology;
  std::vector<Vertex> devices;
  std::function<Route(std::size_t from, std::size_t to)> route;
};

}  // namespace orrery
