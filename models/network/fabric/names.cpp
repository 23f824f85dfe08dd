// Names of links and switches in reports, pictures and perturbations, and their inverse.

#include <fmt/format.h>

#include <string>

#include "models/network/fabric/fabric_graph.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

using hardware::FabricKind;

namespace {

/// "2.0.1": a router's coordinate along each dimension.
std::string coordinates(std::size_t router, const std::vector<int>& dimensions) {
  std::string text;
  for (const int size : dimensions) {
    const auto along = static_cast<std::size_t>(size);
    text += fmt::format("{}{}", text.empty() ? "" : ".", router % along);
    router /= along;
  }
  return text;
}

}  // namespace

std::string FabricGraph::switch_name(std::size_t tier, std::size_t group, std::size_t copy) const {
  if (kind_ == FabricKind::dragonfly) return fmt::format("group{}/router{}", group, copy);
  if (!hardware::is_tree(kind_)) return "router" + coordinates(group, direct_.dimensions);
  const bool trunk = routing_ == hardware::Routing::spray;
  const std::size_t rails = nics_;
  if (tier == 0) {
    if (!hardware::has_rails(kind_)) return fmt::format("leaf{}", group);
    const std::size_t units = built_.tiers[0].groups / rails;
    if (kind_ == FabricKind::rail_only) {
      return fmt::format("rail{}/leaf{}", group / units, group % units);
    }
    return fmt::format("rail{}/leaf{}", group % rails, group / rails);
  }
  if (tier == 2) return trunk ? std::string{"cores"} : fmt::format("core{}", copy);
  std::string spine = trunk ? std::string{"spines"} : fmt::format("spine{}", copy);
  if (kind_ == FabricKind::rail_only) return fmt::format("rail{}/{}", group, spine);
  return built_.tiers.size() == 2 ? spine : fmt::format("pod{}/{}", group, spine);
}

std::string FabricGraph::name(Vertex vertex) const {
  const std::size_t v = index(vertex);
  if (v < built_.devices.size()) {
    const std::size_t port = port_at(v);
    return fmt::format("node{}/nic{}", port / nics_, port % nics_);
  }
  for (std::size_t t = built_.tiers.size(); t-- > 0;) {
    const Tier& tier = built_.tiers[t];
    if (v < tier.first) continue;
    return switch_name(t, (v - tier.first) / tier.each, (v - tier.first) % tier.each);
  }
  throw ContractError{"a vertex of a fabric is a port or a switch"};
}

std::string FabricGraph::name(LinkId link) const {
  const auto& links = built_.topology.links();
  const Topology::Link& ends = links.at(index(link));
  const auto is_parallel = [&](std::size_t l) {
    return links[l].from == ends.from && links[l].to == ends.to;
  };
  std::size_t first = index(link);  // parallel cables are built one after the other
  while (first > 0 && is_parallel(first - 1)) --first;
  const std::string cable =
      first == index(link) ? "" : fmt::format(", cable {}", index(link) - first + 1);
  return name(ends.from) + " to " + name(ends.to) + cable;
}

std::optional<Vertex> FabricGraph::switch_named(std::string_view wanted) const {
  for (std::size_t v = built_.devices.size(); v < built_.topology.vertices(); ++v) {
    const Vertex vertex{static_cast<std::uint32_t>(v)};
    if (name(vertex) == wanted) return vertex;
  }
  return std::nullopt;
}

std::optional<LinkId> FabricGraph::link_named(std::string_view wanted) const {
  const std::size_t gap = wanted.find(" to ");
  if (gap == std::string_view::npos) return std::nullopt;
  const auto vertex_named = [&](std::string_view text) -> std::optional<Vertex> {
    for (std::size_t v = 0; v < built_.topology.vertices(); ++v) {
      const Vertex vertex{static_cast<std::uint32_t>(v)};
      if (name(vertex) == text) return vertex;
    }
    return std::nullopt;
  };
  const auto from = vertex_named(wanted.substr(0, gap));
  const std::string_view end = wanted.substr(gap + 4);
  const auto to = vertex_named(end.substr(0, end.find(',')));
  const auto& links = built_.topology.links();
  for (std::size_t l = 0; from && to && l < links.size(); ++l) {
    const LinkId link{static_cast<std::uint32_t>(l)};
    if (links[l].from == *from && links[l].to == *to && name(link) == wanted) return link;
  }
  return std::nullopt;
}

}  // namespace orrery::models
