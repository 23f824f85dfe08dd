#include "scenarios/topology/bisection.hpp"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>

namespace orrery::scenarios {

namespace {

constexpr std::size_t most_links = 200'000;

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
struct CutEdge {
  std::int64_t capacity = 0;  // bytes per second
  std::int64_t left = 0;
  Traits::edge_descriptor back{};
};
using CutGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, CutEdge>;

void add_edge(CutGraph& graph, std::size_t from, std::size_t to, double capacity) {
  const auto there = boost::add_edge(from, to, graph).first;
  const auto back = boost::add_edge(to, from, graph).first;
  graph[there].capacity = static_cast<std::int64_t>(capacity);
  graph[there].back = back;
  graph[back].back = there;
}

}  // namespace

std::optional<Bandwidth> bisection(const models::FabricGraph& graph, std::size_t nodes) {
  const auto& links = graph.topology().links();
  if (nodes < 2 || links.size() > most_links) return std::nullopt;
  const std::size_t source = graph.topology().vertices(), sink = source + 1;
  CutGraph cut(sink + 1);
  for (const auto& link : links) {
    add_edge(cut, index(link.from), index(link.to), link.bandwidth.count());
  }
  const std::size_t nics = graph.ports() / nodes;
  for (std::size_t port = 0; port < graph.ports(); ++port) {
    const auto& out = links[index(graph.out_of(port))];
    const std::size_t node = port / nics;
    if (node < nodes / 2) add_edge(cut, source, index(out.from), out.bandwidth.count());
    if (node >= nodes - nodes / 2) add_edge(cut, index(out.from), sink, out.bandwidth.count());
  }
  const std::int64_t flow = boost::push_relabel_max_flow(
      cut, source, sink, boost::get(&CutEdge::capacity, cut), boost::get(&CutEdge::left, cut),
      boost::get(&CutEdge::back, cut), boost::get(boost::vertex_index, cut));
  return Bandwidth{static_cast<double>(flow)};
}

}  // namespace orrery::scenarios
