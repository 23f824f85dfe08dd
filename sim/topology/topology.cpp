#include "sim/topology/topology.hpp"

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
