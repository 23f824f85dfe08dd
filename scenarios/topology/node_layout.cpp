#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "scenarios/topology/layout.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

using models::NodeGraph;

constexpr double slot_width = 74;  // of a GPU or NIC
constexpr double level_gap = 84;   // between a switch and the devices below it

bool has_head(const std::string& name, const char* head) {
  return name.rfind(head, 0) == 0;
}

/// "gpu", "nic", "socket", "nvswitch" or "pcie".
std::string device_kind(const std::string& name) {
  for (const char* kind : {"gpu", "nic", "nvswitch"}) {
    if (has_head(name, kind)) return kind;
  }
  return has_head(name, "cpu") ? "socket" : "pcie";
}

class NodeLayout {
 public:
  explicit NodeLayout(const NodeGraph& graph)
      : graph_{graph}, neighbours_(graph.topology().vertices()) {
    for (const auto& link : graph.topology().links()) {
      neighbours_[index(link.from)].push_back(index(link.to));
    }
  }

  Picture picture(const std::string& title) {
    place_tree();
    Picture picture;
    picture.title = title;
    const std::size_t deepest = deepest_;
    picture.width = std::max(620.0, slot_width * slots_ + 80);
    const double top = 150;  // NVLink is above the devices
    for (std::size_t v = 0; v < neighbours_.size(); ++v) {
      const std::string& name = name_of(v);
      const std::string kind = device_kind(name);
      const bool device = kind == "gpu" || kind == "nic";
      double y = top + level_gap * static_cast<double>(deepest - depth_[v] + (device ? 0 : 1));
      if (device) y = top;
      if (kind == "nvswitch") y = 40, x_[v] = picture.width / 2;
      places_[v] = {x_[v], y};
      picture.boxes.push_back({name, name, kind, x_[v], y,
                               kind == "nvswitch" ? std::min(420.0, picture.width - 120) : 62, 24});
      picture.height = std::max(picture.height, y + 60);
    }
    add_lines(picture);
    return picture;
  }

 private:
  const std::string& name_of(std::size_t v) const {
    return graph_.name(Vertex{static_cast<std::uint32_t>(v)});
  }
  bool is_device(std::size_t v) const {
    const std::string kind = device_kind(name_of(v));
    return kind == "gpu" || kind == "nic";
  }

  /// Roots are the sockets, then switches that no socket reaches; devices take columns in order.
  void place_tree() {
    const std::size_t count = neighbours_.size();
    x_.assign(count, 0);
    depth_.assign(count, 0);
    places_.assign(count, {0, 0});
    std::set<std::size_t> seen;
    const auto descend = [&](std::size_t root) {
      if (seen.insert(root).second) place(root, 0, seen);
    };
    for (const char* kind : {"socket", "pcie"}) {
      for (std::size_t v = 0; v < count; ++v) {
        if (device_kind(name_of(v)) == kind) descend(v);
      }
    }
    for (std::size_t v = 0; v < count; ++v) {
      if (is_device(v)) descend(v);
    }
  }

  void place(std::size_t v, std::size_t depth, std::set<std::size_t>& seen) {
    depth_[v] = depth;
    if (!is_device(v)) deepest_ = std::max(deepest_, depth);
    double sum = 0;
    int below = 0;
    for (const std::size_t next : neighbours_[v]) {
      const std::string kind = device_kind(name_of(next));
      const bool down = !is_device(v) && kind != "nvswitch" && kind != "socket";
      if (!down || !seen.insert(next).second) continue;
      place(next, depth + 1, seen);
      sum += x_[next];
      ++below;
    }
    x_[v] = below > 0 ? sum / below : 40 + slot_width * (slots_++ + 0.5);
  }

  void add_lines(Picture& picture) const {
    const auto& links = graph_.topology().links();
    double widest = 0;
    for (const auto& link : links) widest = std::max(widest, link.bandwidth.count());
    for (std::size_t l = 0; l < links.size(); ++l) {
      const auto& link = links[l];
      const std::size_t one = index(link.from), other = index(link.to);
      if (one > other) continue;
      const bool both = device_kind(name_of(one)) == "gpu" && device_kind(name_of(other)) == "gpu";
      const bool sockets =
          device_kind(name_of(one)) == "socket" && device_kind(name_of(other)) == "socket";
      const double across = std::abs(places_[one].first - places_[other].first);
      const bool leftwards = places_[one].first > places_[other].first;
      double bend = both ? std::min(105.0, 14 + across * 0.16) : sockets ? -16.0 : 0;
      if (leftwards) bend = -bend;
      picture.lines.push_back({graph_.name(LinkId{static_cast<std::uint32_t>(l)}), name_of(one),
                               name_of(other), format(link.bandwidth),
                               both || device_kind(name_of(other)) == "nvswitch" ? 1
                               : sockets                                         ? 2
                                                                                 : 0,
                               places_[one].first, places_[one].second - (both ? 12 : 0),
                               places_[other].first, places_[other].second - (both ? 12 : 0), bend,
                               1 + 3 * link.bandwidth.count() / widest});
    }
  }

  const NodeGraph& graph_;
  std::vector<std::vector<std::size_t>> neighbours_;
  std::vector<double> x_;
  std::vector<std::size_t> depth_;
  std::vector<std::pair<double, double>> places_;
  std::size_t deepest_ = 0;
  int slots_ = 0;
};

}  // namespace

Picture node_picture(const hardware::NodeType& node, const std::string& title) {
  const NodeGraph graph{node};
  Picture picture = NodeLayout{graph}.picture(title);
  picture.caption = fmt::format("{} GPUs, {} NICs{}", node.gpus, node.nics,
                                graph.stated() ? "" : "; cables follow from kind and counts");
  return picture;
}

}  // namespace orrery::scenarios
