#include "models/network/fabric/inside_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace orrery::models {

InsideLinks::InsideLinks(const hardware::Cluster& cluster, std::size_t first)
    : cluster_{cluster},
      graph_{cluster.node},
      first_{first},
      nodes_{static_cast<std::size_t>(cluster.nodes)} {
  if (graph_.stated()) per_node_ = graph_.topology().links().size();
}

Bandwidth InsideLinks::capacity(std::size_t link) const {
  const Bandwidth cable = graph_.topology().links().at((link - first_) % per_node_).bandwidth;
  return std::max(cable * (1 / cluster_.fabric.efficiency), cluster_.nic_bandwidth());
}

std::string InsideLinks::name(std::size_t link) const {
  const std::size_t at = link - first_;
  return fmt::format("node{}/{}", at / per_node_,
                     graph_.name(LinkId{static_cast<std::uint32_t>(at % per_node_)}));
}

std::optional<std::size_t> InsideLinks::named(std::string_view text) const {
  constexpr std::string_view word = "node";
  std::size_t node = 0;
  if (!text.starts_with(word)) return std::nullopt;
  const auto [end, error] =
      std::from_chars(text.data() + word.size(), text.data() + text.size(), node);
  if (error != std::errc{} || node >= nodes_) return std::nullopt;
  for (std::size_t link = first_ + node * per_node_; link < first_ + (node + 1) * per_node_;
       ++link) {
    if (name(link) == text) return link;
  }
  return std::nullopt;
}

InsidePaths InsideLinks::paths() const {
  InsidePaths paths;
  if (per_node_ == 0) return paths;
  paths.first_link = static_cast<std::uint32_t>(first_);
  paths.links_per_node = static_cast<std::uint32_t>(per_node_);
  const auto links_of = [&](Vertex from, Vertex to) {
    std::vector<std::uint32_t> links;
    for (const LinkId link : graph_.route(from, to).value_or(Route{})) {
      links.push_back(static_cast<std::uint32_t>(index(link)));
    }
    return links;
  };
  for (int gpu = 0; gpu < cluster_.node.gpus; ++gpu) {
    const Vertex own = *graph_.named(fmt::format("gpu{}", gpu));
    for (int nic = 0; nic < cluster_.node.nics; ++nic) {
      const Vertex port = *graph_.named(fmt::format("nic{}", nic));
      paths.out.push_back(links_of(own, port));
      paths.in.push_back(links_of(port, own));
    }
  }
  return paths;
}

}  // namespace orrery::models
