#include "models/network/fabric/node_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "sim/errors.hpp"

namespace orrery::models {

using hardware::ScaleUp;

namespace {

bool is_end(const std::string& name) {
  return name.rfind("gpu", 0) == 0 || name.rfind("nic", 0) == 0;
}

/// A vertex reached by the search: hops so far (-1: not reached), the narrowest link on the way,
/// and the last link.
struct Reached {
  int links = -1;
  double width = 0;
  LinkId last{};
};

}  // namespace

std::vector<int> nics_of(const hardware::NodeType& node, int gpu) {
  ensure(gpu >= 0 && gpu < node.gpus && node.nics > 0, "a GPU of the node is served by its NICs");
  if (!node.gpu_nics.empty()) return node.gpu_nics.at(static_cast<std::size_t>(gpu));
  const std::int64_t first = std::int64_t{gpu} * node.nics / node.gpus;
  const std::int64_t end = std::int64_t{gpu + 1} * node.nics / node.gpus;
  std::vector<int> nics{static_cast<int>(first)};
  for (std::int64_t nic = first + 1; nic < end; ++nic) nics.push_back(static_cast<int>(nic));
  return nics;
}

NodeGraph::NodeGraph(const hardware::NodeType& node) : stated_{!node.cables.empty()} {
  for (int gpu = 0; gpu < node.gpus; ++gpu) vertex(fmt::format("gpu{}", gpu));
  for (int nic = 0; nic < node.nics; ++nic) vertex(fmt::format("nic{}", nic));
  for (const hardware::NodeCable& cable : node.cables) {
    connect(cable.one, cable.other, cable.bandwidth);
  }
  if (!stated_) add_usual(node);
}

Vertex NodeGraph::vertex(const std::string& name) {
  if (const auto known = named(name)) return *known;
  names_.push_back(name);
  return is_end(name) ? topology_.add_device() : topology_.add_switch();
}

void NodeGraph::connect(const std::string& one, const std::string& other, Bandwidth bandwidth) {
  const Vertex first = vertex(one);
  topology_.connect(first, vertex(other), bandwidth, Time{});
}

/// Connects GPUs by their scale-up network, and each NIC to a PCIe switch with the GPUs it serves.
void NodeGraph::add_usual(const hardware::NodeType& node) {
  const Bandwidth link = node.scale_up_bandwidth;
  const bool all_pairs = node.scale_up == ScaleUp::mesh || node.scale_up == ScaleUp::xgmi;
  for (int gpu = 0; gpu < node.gpus && node.gpus > 1; ++gpu) {
    const std::string own = fmt::format("gpu{}", gpu);
    for (int peer = gpu + 1; all_pairs && peer < node.gpus; ++peer) {
      connect(own, fmt::format("gpu{}", peer), link * (1.0 / (node.gpus - 1)));
    }
    if (node.scale_up == ScaleUp::nvswitch) connect(own, "nvswitch", link);
    if (node.scale_up == ScaleUp::pcie) connect(own, "host", link);
    if (node.scale_up == ScaleUp::shared_memory) connect(own, "memory", link);
  }
  const Bandwidth host = node.gpu.host_link;
  for (int gpu = 0; gpu < node.gpus && node.nics > 0; ++gpu) {
    const std::vector<int> nics = nics_of(node, gpu);
    const std::string bridge = fmt::format("pcie{}", nics.front());
    connect(fmt::format("gpu{}", gpu), bridge, host.count() > 0 ? host : node.nic_bandwidth);
    for (const int nic : nics) {
      const std::string name = fmt::format("nic{}", nic);
      const auto there = named(bridge);
      const auto& links = topology_.links();
      const bool cabled = std::ranges::any_of(
          links, [&](const auto& each) { return each.from == *named(name) && each.to == *there; });
      if (!cabled) connect(name, bridge, host.count() > 0 ? host : node.nic_bandwidth);
    }
  }
}

std::optional<Vertex> NodeGraph::named(const std::string& name) const {
  const auto found = std::ranges::find(names_, name);
  if (found == names_.end()) return std::nullopt;
  return Vertex{static_cast<std::uint32_t>(found - names_.begin())};
}

std::string NodeGraph::name(LinkId link) const {
  const Topology::Link& ends = topology_.links().at(index(link));
  return name(ends.from) + " to " + name(ends.to);
}

std::optional<Route> NodeGraph::route(Vertex from, Vertex to) const {
  const auto& links = topology_.links();
  std::vector<std::vector<LinkId>> out(topology_.vertices());
  for (std::size_t l = 0; l < links.size(); ++l) {
    out[index(links[l].from)].push_back(LinkId{static_cast<std::uint32_t>(l)});
  }
  std::vector<Reached> reach(topology_.vertices());
  reach.at(index(from)) = {0, 1e300, {}};
  std::queue<Vertex> next;
  for (next.push(from); !next.empty(); next.pop()) {
    const Vertex here = next.front();
    if (here != from && topology_.kind(here) == VertexKind::device)
      continue;  // no path through a GPU or NIC
    for (const LinkId link : out[index(here)]) {
      const Topology::Link& step = links[index(link)];
      Reached& there = reach[index(step.to)];
      const double width = std::min(reach[index(here)].width, step.bandwidth.count());
      const int away = reach[index(here)].links + 1;
      if (there.links >= 0 && (there.links < away || there.width >= width)) continue;
      if (there.links < 0) next.push(step.to);
      there = {away, width, link};
    }
  }
  if (reach.at(index(to)).links < 0) return std::nullopt;
  Route route;
  for (Vertex here = to; here != from; here = links[index(route.back())].from) {
    route.push_back(reach[index(here)].last);
  }
  std::ranges::reverse(route);
  return route;
}

}  // namespace orrery::models
