#include "sim/topology/topology.hpp"

#include <algorithm>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/visitors.hpp>

#include "sim/errors.hpp"

namespace orrery {

Vertex Topology::add(VertexKind kind) {
  const auto vertex = boost::add_vertex(*graph_);
  (*graph_)[vertex].kind = kind;
  return Vertex{static_cast<std::uint32_t>(vertex)};
}

LinkId Topology::add_link(Vertex from, Vertex to, Bandwidth bandwidth, Time latency) {
  ensure(index(from) < vertices() && index(to) < vertices(),
         "a link joins two vertices of its topology");
  const LinkId id{static_cast<std::uint32_t>(links_.size())};
  boost::add_edge(index(from), index(to), {id, bandwidth, latency}, *graph_);
  links_.push_back({from, to, bandwidth, latency});
  return id;
}

Topology::Cable Topology::connect(Vertex one, Vertex other, Bandwidth bandwidth, Time latency) {
  const LinkId there = add_link(one, other, bandwidth, latency);
  const LinkId back = add_link(other, one, bandwidth, latency);
  return {there, back};
}

Time Topology::latency(const Route& route) const {
  Time sum{};
  for (const LinkId link : route) sum += links_.at(index(link)).latency;
  return sum;
}

bool Topology::joins(const Route& route, Vertex from, Vertex to) const {
  Vertex here = from;
  for (const LinkId link : route) {
    if (index(link) >= links_.size() || links_[index(link)].from != here) return false;
    here = links_[index(link)].to;
  }
  return here == to;
}

void Topology::install(Network& network) const {
  ensure(network.links() == 0, "a topology is installed into a network without links");
  for (const Link& link : links_) network.add_link(link.bandwidth, link.latency);
}

std::optional<Route> shortest_route(const Topology& topology, Vertex from, Vertex to) {
  ensure(index(from) < topology.vertices() && index(to) < topology.vertices(),
         "a route joins two vertices of its topology");
  if (from == to) return Route{};
  using Edge = boost::graph_traits<Topology::Graph>::edge_descriptor;
  std::vector<std::optional<Edge>> arrival(topology.vertices());
  const auto arrivals = boost::record_edge_predecessors(arrival.data(), boost::on_tree_edge());
  boost::breadth_first_search(topology.graph(), index(from),
                              boost::visitor(boost::make_bfs_visitor(arrivals)));
  Route route;
  for (Vertex here = to; here != from;) {
    const std::optional<Edge> edge = arrival[index(here)];
    if (!edge) return std::nullopt;
    const LinkId link = topology.graph()[*edge].id;
    route.push_back(link);
    here = topology.links()[index(link)].from;
  }
  std::reverse(route.begin(), route.end());
  return route;
}

}  // namespace orrery
