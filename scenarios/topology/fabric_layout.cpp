#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "scenarios/topology/bill.hpp"
#include "scenarios/topology/layout.hpp"
#include "scenarios/topology/topology_facts.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::size_t most_lines = 12'000;
constexpr double margin = 40;

struct Point {
  double x = 0, y = 0;
};

class FabricLayout {
 public:
  explicit FabricLayout(const hardware::Cluster& cluster)
      : cluster_{cluster},
        bill_{bill_of(cluster)},
        nics_{static_cast<std::size_t>(cluster.node.nics)},
        nodes_{static_cast<std::size_t>(cluster.nodes)},
        places_(bill_.switches.size()),
        ports_(nodes_ * nics_) {}

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
  std::size_t lines() const { return bill_.cables.size(); }

 private:
  void add_switch(std::size_t number, Point here, double width, double height) {
    const std::string& name = bill_.switches[number].name;
    places_[number] = here;
    picture_.boxes.push_back({name, name, "switch", here.x, here.y, width, height});
  }

  /// A node as a box with its NICs inside, in a row.
  void add_node(std::size_t node, Point middle, double width, double height) {
    const std::string name = fmt::format("node{}", node);
    const std::string label = width < 30 && height > 20 ? fmt::format("{}", node) : name;
    picture_.boxes.push_back({name, label, "node", middle.x, middle.y, width, height});
    for (std::size_t nic = 0; nic < nics_; ++nic) {
      const double share = (static_cast<double>(nic) + 0.5) / static_cast<double>(nics_);
      ports_[node * nics_ + nic] = {middle.x + width * (share - 0.5), middle.y - height / 2};
    }
  }

  /// Numbers of the switches of each level, from the nodes up.
  std::vector<std::vector<std::size_t>> levels() const {
    std::vector<std::vector<std::size_t>> rows;
    for (std::size_t i = 0; i < bill_.switches.size(); ++i) {
      const auto level = static_cast<std::size_t>(bill_.switches[i].level);
      rows.resize(std::max(rows.size(), level + 1));
      rows[level].push_back(i);
    }
    return rows;
  }

  void place_rows() {
    const auto rows = levels();
    std::size_t widest = nodes_;
    for (const auto& row : rows) widest = std::max(widest, row.size());
    picture_.width = std::clamp(static_cast<double>(widest) * 34.0, 900.0, 2400.0);
    const double inner = picture_.width - 2 * margin;
    const double row_height = std::max(190.0, inner * 0.14);
    picture_.height = row_height * static_cast<double>(rows.size()) + 90;
    for (std::size_t t = 0; t < rows.size(); ++t) {
      const double step = inner / static_cast<double>(rows[t].size());
      const double y = 40 + row_height * static_cast<double>(rows.size() - 1 - t);
      for (std::size_t i = 0; i < rows[t].size(); ++i) {
        add_switch(rows[t][i], {margin + step * (static_cast<double>(i) + 0.5), y},
                   std::min(96.0, step * 0.86), 24);
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
    const auto of_group = static_cast<std::size_t>(cluster_.fabric.direct.routers_per_group);
    const std::size_t groups = (bill_.switches.size() + of_group - 1) / of_group;
    const std::size_t each_group = std::min(of_group, bill_.switches.size());
    const double around = 2 * std::numbers::pi;
    const double small = std::clamp(static_cast<double>(each_group) * 12, 60.0, 220.0);
    const double large =
        groups == 1 ? 0
                    : std::max(260.0, 1.25 * (small + 60) /
                                          std::sin(std::numbers::pi / static_cast<double>(groups)));
    const Point middle{large + small + 110, large + small + 110};
    picture_.width = 2 * middle.x;
    picture_.height = 2 * middle.y;
    for (std::size_t group = 0; group < groups; ++group) {
      const double angle = around * static_cast<double>(group) / static_cast<double>(groups);
      const Point centre{middle.x + large * std::cos(angle), middle.y + large * std::sin(angle)};
      for (std::size_t r = 0; r < each_group; ++r) {
        const double turn =
            angle + around * (static_cast<double>(r) + 0.5) / static_cast<double>(each_group);
        const Point here{centre.x + small * std::cos(turn), centre.y + small * std::sin(turn)};
        place_fan(group * each_group + r, here, centre, 46);
        add_switch(group * each_group + r, here, 58, 16);
      }
    }
  }

  /// Draws three dimensions in oblique projection; further dimensions are cubes side by side.
  void place_grid() {
    const auto size = [&](std::size_t d) {
      const auto& dimensions = cluster_.fabric.direct.dimensions;
      return d < dimensions.size() ? static_cast<std::size_t>(dimensions[d]) : 1;
    };
    const std::size_t wide = size(0), high = size(1), deep = size(2);
    const Point step{static_cast<double>(deep) * 46 + 62, static_cast<double>(deep) * 36 + 66};
    const double cube = step.x * static_cast<double>(wide) + 80;
    const std::size_t cubes = bill_.switches.size() / (wide * high * deep);
    picture_.width = std::max(700.0, 2 * margin + cube * static_cast<double>(cubes));
    picture_.height = 2 * margin + step.y * static_cast<double>(high) + 40;
    for (std::size_t r = 0; r < bill_.switches.size(); ++r) {
      const auto x = static_cast<double>(r % wide);
      const auto y = static_cast<double>(r / wide % high);
      const auto z = static_cast<double>(r / (wide * high) % deep);
      const auto c = static_cast<double>(r / (wide * high * deep));
      const Point here{margin + 50 + cube * c + step.x * x + 46 * z,
                       picture_.height - margin - 40 - step.y * y - 36 * z};
      place_fan(r, here, {here.x - 20, here.y - 12}, 30);
      add_switch(r, here, 58, 15);
    }
  }

  /// Draws a NIC's cable, or all cables between two switches as one line, the wider the more they
  /// carry; those around a torus are bent.
  void add_lines() {
    for (const BillCable& each : bill_.cables) {
      const Point one = each.nic ? ports_[*each.nic] : places_[each.from];
      const Point other = places_[each.to];
      const std::string from =
          each.nic ? fmt::format("node{}/nic{}", *each.nic / nics_, *each.nic % nics_)
                   : bill_.switches[each.from].name;
      const std::string& to = bill_.switches[each.to].name;
      const std::string rate = each.count == 1
                                   ? format(each.rate)
                                   : fmt::format("{} cables of {}", each.count, format(each.rate));
      const double thick = each.rate.count() * each.count / cluster_.nic_bandwidth().count();
      const int level = each.nic ? 0 : bill_.switches[each.from].level + 1;
      picture_.lines.push_back({from + " to " + to, from, to, rate, level, one.x, one.y, other.x,
                                other.y, !each.nic && wraps(each) ? 26.0 : 0.0,
                                std::clamp(std::sqrt(thick), 0.7, 6.0)});
    }
  }
  /// Whether a torus cable wraps around: its two ends are not neighbours on the grid.
  bool wraps(const BillCable& cable) const {
    std::size_t one = cable.from, other = cable.to;
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

  const hardware::Cluster& cluster_;
  FabricBill bill_;
  std::size_t nics_, nodes_;
  std::vector<Point> places_, ports_;  // of switches, and of NICs
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
