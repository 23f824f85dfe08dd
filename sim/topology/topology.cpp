#include "sim/topology/topology.hpp"

#include <algorithm>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/visitors.hpp>

#include "sim/errors.hpp"

namespace orrery {

Vertex Topology::add(VertexKind kind) {
  kinds_.push_back(kind);
  return Vertex{static_cast<std::uint32_t>(kinds_.size() - 1)};
}

LinkId Topology::add_link(Vertex from, Vertex to, Bandwidth bandwidth, Time latency) {
  ensure(index(from) < vertices() && index(to) < vertices(),
         "a link joins two vertices of its topology");
  const LinkId id{static_cast<std::uint32_t>(links_.size())};
  links_.push_back({from, to, bandwidth, latency});
  return id;
}

Topology::Cable Topology::connect(Vertex one, Vertex other, Bandwidth bandwidth, Time latency) {
  const LinkId there = add_link(one, other, bandwidth, latency);
  const LinkId back = add_link(other, one, bandwidth, latency);
  return {there, back};
}

Topology::Graph Topology::graph() const {
  Graph graph(kinds_.size());
  for (std::size_t v = 0; v < kinds_.size(); ++v) graph[v].kind = kinds_[v];
  for (std::size_t l = 0; l < links_.size(); ++l) {
    const Link& link = links_[l];
    const LinkId id{static_cast<std::uint32_t>(l)};
    boost::add_edge(index(link.from), index(link.to), {id, link.bandwidth, link.latency}, graph);
  }
  return graph;
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
  const Topology::Graph graph = topology.graph();
  std::vector<std::optional<Edge>> arrival(topology.vertices());
  const auto arrivals = boost::record_edge_predecessors(arrival.data(), boost::on_tree_edge());
  boost::breadth_first_search(graph, index(from),
                              boost::visitor(boost::make_bfs_visitor(arrivals)));
  Route route;
  for (Vertex here = to; here != from;) {
    const std::optional<Edge> edge = arrival[index(here)];
    if (!edge) return std::nullopt;
    const LinkId link = graph[*edge].id;
    route.push_back(link);
    here = topology.links()[index(link)].from;
  }
  std::reverse(route.begin(), route.end());
  return route;
}

std::size_t hashed_choice(const FlowEnds& flow, std::size_t level, std::size_t count) {
  std::uint64_t state = 0;
  for (const std::uint64_t word :
       {std::uint64_t{flow.from}, std::uint64_t{flow.to}, flow.flow, std::uint64_t{level}}) {
    state = (state ^ word) + 0x9e37'79b9'7f4a'7c15;
    state = (state ^ (state >> 30)) * 0xbf58'476d'1ce4'e5b9;
    state = (state ^ (state >> 27)) * 0x94d0'49bb'1331'11eb;
    state ^= state >> 31;
  }
  return static_cast<std::size_t>(state % count);
}

Route Interconnect::route(std::size_t from, std::size_t to) const {
  Route route;
  append({.from = from, .to = to}, route);
  return route;
}

}  // namespace orrery
