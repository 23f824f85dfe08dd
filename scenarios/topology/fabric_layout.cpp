#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "scenarios/topology/layout.hpp"
#include "scenarios/topology/topology_facts.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

using models::FabricGraph;

constexpr std::size_t most_lines = 12'000;
constexpr double margin = 40;

struct Point {
  double x = 0, y = 0;
};

class FabricLayout {
 public:
  explicit FabricLayout(const hardware::Cluster& cluster)
      : cluster_{cluster},
        graph_{cluster},
        nics_{static_cast<std::size_t>(cluster.node.nics)},
        nodes_{static_cast<std::size_t>(cluster.nodes)},
        places_(graph_.topology().vertices()) {}

  Picture picture() {
    picture_.title = cluster_.name;
    if (hardware::is_tree(cluster_.fabric.kind)) {
      place_rows();
    } else if (cluster_.fabric.kind == hardware::FabricKind::dragonfly) {
      place_groups();
    } else {
      place_grid();
    }
    add_lines();
    return std::move(picture_);
  }
  std::size_t lines() const { return graph_.links() / 2; }

 private:
  /// The position of switch `i` of a tier.
  Point& at(const Tier& tier, std::size_t i) { return places_[tier.first + i]; }

  Vertex vertex(std::size_t v) const { return Vertex{static_cast<std::uint32_t>(v)}; }

  void add_switch(std::size_t v, double width, double height) {
    const std::string name = graph_.name(vertex(v));
    picture_.boxes.push_back({name, name, "switch", places_[v].x, places_[v].y, width, height});
  }

  /// A node as a box with its NICs inside, in a row.
  void add_node(std::size_t node, Point middle, double width, double height) {
    const std::string name = fmt::format("node{}", node);
    const std::string label = width < 30 && height > 20 ? fmt::format("{}", node) : name;
    picture_.boxes.push_back({name, label, "node", middle.x, middle.y, width, height});
    for (std::size_t nic = 0; nic < nics_; ++nic) {
      const auto& out = graph_.topology().links()[index(graph_.out_of(graph_.port(node, nic)))];
      const double share = (static_cast<double>(nic) + 0.5) / static_cast<double>(nics_);
      places_[index(out.from)] = {middle.x + width * (share - 0.5), middle.y - height / 2};
    }
  }

  void place_rows() {
    const auto& tiers = graph_.tiers();
    std::size_t widest = nodes_;
    for (const Tier& tier : tiers) widest = std::max(widest, tier.groups * tier.each);
    picture_.width = std::clamp(static_cast<double>(widest) * 34.0, 900.0, 2400.0);
    const double inner = picture_.width - 2 * margin;
    const double row_height = std::max(190.0, inner * 0.14);
    picture_.height = row_height * static_cast<double>(tiers.size()) + 90;
    for (std::size_t t = 0; t < tiers.size(); ++t) {
      const std::size_t count = tiers[t].groups * tiers[t].each;
      const double step = inner / static_cast<double>(count);
      const double y = 40 + row_height * static_cast<double>(tiers.size() - 1 - t);
      for (std::size_t i = 0; i < count; ++i) {
        at(tiers[t], i) = {margin + step * (static_cast<double>(i) + 0.5), y};
        add_switch(tiers[t].first + i, std::min(96.0, step * 0.86), 24);
      }
    }
    const double step = inner / static_cast<double>(nodes_);
    for (std::size_t node = 0; node < nodes_; ++node) {
      add_node(node, {margin + step * (static_cast<double>(node) + 0.5), picture_.height - 40},
               std::min(90.0, step * 0.86), 24);
    }
  }

  /// Places a router's nodes in a fan that points away from `centre`.
  void place_fan(std::size_t router, Point here, Point centre, double reach) {
    const double outward = std::atan2(here.y - centre.y, here.x - centre.x);
    const std::size_t first = router * static_cast<std::size_t>(cluster_.fabric.nodes_per_leaf);
    const std::size_t end =
        std::min(nodes_, first + static_cast<std::size_t>(cluster_.fabric.nodes_per_leaf));
    for (std::size_t node = first; node < end; ++node) {
      const double share = (static_cast<double>(node - first) + 0.5) /
                           static_cast<double>(cluster_.fabric.nodes_per_leaf);
      const double angle = outward + (share - 0.5) * 1.1;
      add_node(node, {here.x + reach * std::cos(angle), here.y + reach * std::sin(angle)}, 26, 12);
    }
  }

  void place_groups() {
    const Tier& tier = graph_.tiers().front();
    const double around = 2 * std::numbers::pi;
    const double small = std::clamp(static_cast<double>(tier.each) * 12, 60.0, 220.0);
    const double large =
        tier.groups == 1
            ? 0
            : std::max(260.0, 1.25 * (small + 60) /
                                  std::sin(std::numbers::pi / static_cast<double>(tier.groups)));
    const Point middle{large + small + 110, large + small + 110};
    picture_.width = 2 * middle.x;
    picture_.height = 2 * middle.y;
    for (std::size_t group = 0; group < tier.groups; ++group) {
      const double angle = around * static_cast<double>(group) / static_cast<double>(tier.groups);
      const Point centre{middle.x + large * std::cos(angle), middle.y + large * std::sin(angle)};
      for (std::size_t r = 0; r < tier.each; ++r) {
        const double turn =
            angle + around * (static_cast<double>(r) + 0.5) / static_cast<double>(tier.each);
        const std::size_t router = group * tier.each + r;
        at(tier, router) = {centre.x + small * std::cos(turn), centre.y + small * std::sin(turn)};
        place_fan(router, at(tier, router), centre, 46);
        add_switch(tier.first + router, 58, 16);
      }
    }
  }

  /// Draws three dimensions in oblique projection; further dimensions are cubes side by side.
  void place_grid() {
    const Tier& tier = graph_.tiers().front();
    const auto size = [&](std::size_t d) {
      const auto& dimensions = cluster_.fabric.direct.dimensions;
      return d < dimensions.size() ? static_cast<std::size_t>(dimensions[d]) : 1;
    };
    const std::size_t wide = size(0), high = size(1), deep = size(2);
    const Point step{static_cast<double>(deep) * 46 + 62, static_cast<double>(deep) * 36 + 66};
    const double cube = step.x * static_cast<double>(wide) + 80;
    const std::size_t cubes = tier.groups / (wide * high * deep);
    picture_.width = std::max(700.0, 2 * margin + cube * static_cast<double>(cubes));
    picture_.height = 2 * margin + step.y * static_cast<double>(high) + 40;
    for (std::size_t r = 0; r < tier.groups; ++r) {
      const auto x = static_cast<double>(r % wide);
      const auto y = static_cast<double>(r / wide % high);
      const auto z = static_cast<double>(r / (wide * high) % deep);
      const auto c = static_cast<double>(r / (wide * high * deep));
      const Point here{margin + 50 + cube * c + step.x * x + 46 * z,
                       picture_.height - margin - 40 - step.y * y - 36 * z};
      at(tier, r) = here;
      place_fan(r, here, {here.x - 20, here.y - 12}, 30);
      add_switch(tier.first + r, 58, 15);
    }
  }

  /// Draws one cable for the two directions of a link; wrap-around cables are bent.
  void add_lines() {
    const auto& links = graph_.topology().links();
    for (std::size_t l = 0; l < links.size(); ++l) {
      const auto& link = links[l];
      const bool from_port = index(link.from) < ports_in_all();
      const bool to_port = index(link.to) < ports_in_all();
      if (to_port || (!from_port && link.from > link.to)) continue;
      const Point one = places_[index(link.from)], other = places_[index(link.to)];
      if (from_port && one.x == 0) continue;  // a leaf's port that no node uses
      parallel_ =
          l > 0 && links[l - 1].from == link.from && links[l - 1].to == link.to ? parallel_ + 1 : 0;
      const double thick = link.bandwidth.count() / cluster_.nic_bandwidth().count();
      picture_.lines.push_back({graph_.name(LinkId{static_cast<std::uint32_t>(l)}),
                                graph_.name(link.from), graph_.name(link.to),
                                format(link.bandwidth), level_of(link.from), one.x, one.y, other.x,
                                other.y, !from_port && wraps(link) ? 26.0 : 5.0 * parallel_,
                                std::clamp(std::sqrt(thick), 0.7, 6.0)});
    }
  }
  /// Whether a torus cable wraps around: its two ends are not neighbours on the grid.
  bool wraps(const Topology::Link& link) const {
    std::size_t one = index(link.from) - ports_in_all(), other = index(link.to) - ports_in_all();
    for (const int size : cluster_.fabric.direct.dimensions) {
      const auto along = static_cast<std::size_t>(size);
      const std::size_t apart =
          std::max(one % along, other % along) - std::min(one % along, other % along);
      if (apart > 1) return true;
      one /= along;
      other /= along;
    }
    return false;
  }
  std::size_t ports_in_all() const { return graph_.tiers().front().first; }

  /// 0 for cables from a NIC, t + 1 for those from a switch of tier t. 2 between groups of a
  /// dragonfly.
  int level_of(Vertex from) const {
    if (index(from) < ports_in_all()) return 0;
    int level = 0;
    for (const Tier& tier : graph_.tiers()) level += index(from) >= tier.first ? 1 : 0;
    return level;
  }

  const hardware::Cluster& cluster_;
  FabricGraph graph_;
  std::size_t nics_, nodes_;
  std::vector<Point> places_;
  int parallel_ = 0;  // cables already drawn between the same two switches
  Picture picture_;
};

}  // namespace

Picture fabric_picture(const hardware::Cluster& cluster) {
  hardware::Cluster part = cluster;
  while (part.nodes > 1 && FabricLayout{part}.lines() > most_lines)
    part.nodes = (part.nodes + 1) / 2;
  Picture picture = FabricLayout{part}.picture();
  const auto& fabric = cluster.fabric;
  picture.caption =
      fmt::format("{} nodes, {} NIC{} of {} each; {}, {}", cluster.nodes, cluster.node.nics,
                  cluster.node.nics == 1 ? "" : "s", format(cluster.nic_bandwidth()),
                  word_of(hardware::fabric_kind_words, fabric.kind), routing_text(fabric));
  if (part.nodes < cluster.nodes) {
    picture.caption += fmt::format("; drawn: the first {} nodes", part.nodes);
  }
  return picture;
}

}  // namespace orrery::scenarios
