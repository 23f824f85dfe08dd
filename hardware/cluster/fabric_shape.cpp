#include "hardware/cluster/fabric_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "hardware/reading.hpp"

namespace orrery::hardware {

namespace {

constexpr int most_levels = 3;

/// Kinds of fabric that are described by the same counts.
enum class ShapeFamily : std::uint8_t { tree, dragonfly, grid };

ShapeFamily family_of(FabricKind kind) {
  if (is_tree(kind)) return ShapeFamily::tree;
  return kind == FabricKind::dragonfly ? ShapeFamily::dragonfly : ShapeFamily::grid;
}

struct ShapeKey {
  const char* key;
  ShapeFamily family;
};
constexpr std::array<ShapeKey, 8> shape_keys{{{"levels", ShapeFamily::tree},
                                              {"oversubscription", ShapeFamily::tree},
                                              {"spines", ShapeFamily::tree},
                                              {"leaves_per_pod", ShapeFamily::tree},
                                              {"routers_per_group", ShapeFamily::dragonfly},
                                              {"global_cables", ShapeFamily::dragonfly},
                                              {"dimensions", ShapeFamily::grid},
                                              {"cables", ShapeFamily::grid}}};

/// Ports of a Slingshot switch (Rosetta), for fabrics that state no switch.
constexpr int slingshot_ports = 64;

int positive_count(const Node& node) {
  return static_cast<int>(node.integer(1, most_gpus));
}

/// A single value for the leaves, or a list with one value for each level below the top.
std::vector<Node> by_level(const Node& node, int levels) {
  if (!node.is_array()) return {node};
  std::vector<Node> each = node.elements();
  if (each.empty() || static_cast<int>(each.size()) >= std::max(2, levels)) {
    node.fail(
        fmt::format("expected one value, or a list of {} (one per level below the top), found {}",
                    std::max(1, levels - 1), each.size()));
  }
  return each;
}

/// Ports of one leaf used by its nodes.
int ports_per_leaf(const ClusterFabric& fabric, int nics) {
  return fabric.nodes_per_leaf * (has_rails(fabric.kind) ? 1 : std::max(1, nics));
}

/// Nodes that fit under a leaf. Of its p ports, p * r / (r + 1) face down if the fabric is
/// oversubscribed r : 1; all but those to the spines if `spines` is given; all with one level; a
/// quarter on a dragonfly (read_dragonfly).
int nodes_under_leaf(const ClusterFabric& fabric, int nics) {
  const double r = fabric.oversubscription;
  const double split =
      std::max(1.0, std::floor(ratio(fabric.leaf.bandwidth, fabric.bandwidth) + 1e-9));
  double down = fabric.leaf.ports * r / (1 + r);
  if (fabric.kind == FabricKind::dragonfly) down = fabric.leaf.ports / 4.0;
  if (is_tree(fabric.kind) && fabric.tree.levels == 1) down = fabric.leaf.ports;
  if (fabric.tree.spines > 0) down = fabric.leaf.ports - fabric.tree.spines / split;
  const int cables = has_rails(fabric.kind) ? 1 : std::max(1, nics);
  const double most = most_gpus;
  return std::max(1, static_cast<int>(std::min(down * split, most)) / cables);
}

void read_nodes_per_leaf(const Node& node, NodeCounts counts, ClusterFabric& fabric) {
  const bool direct = fabric.kind == FabricKind::torus || fabric.kind == FabricKind::mesh;
  if (const auto nodes = node.find("nodes_per_leaf")) {
    fabric.nodes_per_leaf = positive_count(*nodes);
  } else if (direct) {
    fabric.nodes_per_leaf = 1;
  } else if (fabric.leaf.ports > 0 && fabric.bandwidth.count() > 0) {
    fabric.nodes_per_leaf = nodes_under_leaf(fabric, counts.nics);
  } else if (is_tree(fabric.kind) && fabric.tree.levels == 1) {
    fabric.nodes_per_leaf = counts.nodes;
  }
}

/// The oversubscription that `down` and `up` cables amount to; refuses a stated value that differs.
double agreed(const std::optional<Node>& stated, int down, int up) {
  const double found = static_cast<double>(down) / up;
  const double given = stated ? stated->as<double>() : found;
  if (std::abs(given - found) > 0.005 * found) {
    stated->fail(
        fmt::format("{} cables down and {} spines up make an oversubscription of {:.4g}, found {}",
                    down, up, found, given));
  }
  return std::max(1.0, found);
}

void read_oversubscription(const Node& node, ClusterFabric& fabric) {
  const auto given = node.find("oversubscription");
  if (!given) return;
  const std::vector<Node> each = by_level(*given, fabric.tree.levels);
  fabric.oversubscription = within(each[0], 1, 1000);
  if (each.size() > 1) fabric.tree.oversubscription_above = within(each[1], 1, 1000);
  if (fabric.tree.levels == 1 && fabric.oversubscription > 1) {
    given->fail("oversubscription needs at least 2 levels of switches, found 1");
  }
}

void read_spines(const Node& node, ClusterFabric& fabric) {
  const auto given = node.find("spines");
  if (!given) return;
  if (fabric.tree.levels == 1) given->fail("spines need at least 2 levels of switches, found 1");
  const std::vector<Node> each = by_level(*given, fabric.tree.levels);
  fabric.tree.spines = static_cast<int>(each[0].integer(1, 4096));
  if (each.size() > 1) fabric.tree.cores = static_cast<int>(each[1].integer(1, 4096));
}

void check_uplinks(const Node& node, NodeCounts counts, ClusterFabric& fabric) {
  TreeShape& tree = fabric.tree;
  const auto given = node.find("oversubscription");
  const auto stated = given ? std::optional{by_level(*given, tree.levels)} : std::nullopt;
  const auto of_level = [&](std::size_t level) {
    return stated && stated->size() > level ? std::optional{(*stated)[level]} : std::nullopt;
  };
  if (tree.spines > 0) {
    fabric.oversubscription = agreed(of_level(0), ports_per_leaf(fabric, counts.nics), tree.spines);
  }
  if (tree.cores > 0) {
    tree.oversubscription_above = agreed(of_level(1), tree.leaves_per_pod, tree.cores);
  }
}

/// By default a pod has as many leaves as a leaf has cables down, so that all switches are alike;
/// on rails, rounded up to a multiple of the number of rails.
void read_pods(const Node& node, NodeCounts counts, ClusterFabric& fabric) {
  const auto given = node.find("leaves_per_pod");
  if (given && fabric.tree.levels != 3) given->fail("leaves_per_pod needs 3 levels of switches");
  if (fabric.tree.levels != 3) return;
  const int rails = has_rails(fabric.kind) ? std::max(1, counts.nics) : 1;
  const int leaves = given ? positive_count(*given) : ports_per_leaf(fabric, counts.nics);
  if (given && leaves % rails != 0) {
    given->fail(fmt::format("expected a multiple of the {} rails, found {}", rails, leaves));
  }
  fabric.tree.leaves_per_pod = (leaves + rails - 1) / rails * rails;
}

void read_tree(const Node& node, NodeCounts counts, ClusterFabric& fabric) {
  TreeShape& tree = fabric.tree;
  const int most = fabric.kind == FabricKind::rail_only ? 2 : most_levels;
  const auto levels = node.find("levels");
  tree.levels = levels ? static_cast<int>(levels->integer(1, most)) : 2;
  read_oversubscription(node, fabric);
  read_spines(node, fabric);
  read_nodes_per_leaf(node, counts, fabric);
  read_pods(node, counts, fabric);
  check_uplinks(node, counts, fabric);
  const bool apart = fabric.kind != FabricKind::rail_optimised;  // its rails meet above leaves
  if (tree.levels == 1 && (counts.nodes > fabric.nodes_per_leaf || !apart)) {
    const Node place = levels ? *levels : node;
    if (!apart && counts.nics > 1) place.fail("rail_optimised needs at least 2 levels, found 1");
    if (counts.nodes > fabric.nodes_per_leaf) {
      place.fail(fmt::format("one level of switches connects at most {} nodes, found {}",
                             fabric.nodes_per_leaf, counts.nodes));
    }
  }
}

/// Of a router's P ports, P / 4 lead to NICs, P / 2 - 1 to the others of its group of P / 2, and
/// the rest to other groups: for 64 ports a Slingshot group, 16 + 31 + 17. Where `nodes_per_leaf`
/// is stated, a balanced dragonfly: a = 2 p = 2 h.
/// Source  De Sensi et al. 2020, "An in-depth analysis of the Slingshot interconnect", section II;
///         Kim et al. 2008, "Technology-driven, highly-scalable dragonfly topology"
void read_dragonfly(const Node& node, NodeCounts counts, ClusterFabric& fabric) {
  const bool balanced = node.has("nodes_per_leaf");
  if (!balanced && fabric.leaf.ports == 0) {
    fabric.leaf.ports = slingshot_ports;
    fabric.leaf.bandwidth = fabric.bandwidth;
  }
  read_nodes_per_leaf(node, counts, fabric);
  const int ports = fabric.leaf.ports;
  const int nics = static_cast<int>(
      std::min<std::int64_t>(std::int64_t{fabric.nodes_per_leaf} * std::max(1, counts.nics), 1024));
  const int routers = balanced ? 2 * nics : std::max(1, ports / 2);
  DirectShape& shape = fabric.direct;
  shape.routers_per_group =
      static_cast<int>(node.integer_or("routers_per_group", 1, 4096, routers));
  const int global =
      balanced ? nics : std::max(1, ports - ports / 4 - (shape.routers_per_group - 1));
  shape.global_cables = static_cast<int>(node.integer_or("global_cables", 1, 4096, global));
  const std::int64_t of_group = std::int64_t{shape.routers_per_group} * fabric.nodes_per_leaf;
  const std::int64_t groups = (counts.nodes + of_group - 1) / of_group;
  const std::int64_t most = std::int64_t{shape.routers_per_group} * shape.global_cables + 1;
  if (groups > most) {
    node.fail(fmt::format("{} nodes make {} groups of {}; global_cables connect at most {} groups",
                          counts.nodes, groups, of_group, most));
  }
}

/// The smallest three-dimensional torus with room for these routers whose longest side is at most
/// twice its shortest; of equals the one with the shortest longest side.
/// Source  Jouppi et al. 2023, "TPU v4": 3D tori of 4 x 4 x 4, 4 x 4 x 8, 4 x 8 x 8 ... chips
std::vector<int> cubic(std::int64_t routers) {
  std::array<std::int64_t, 3> best{};
  std::int64_t least = 0;
  const auto side = static_cast<std::int64_t>(std::ceil(std::cbrt(static_cast<double>(routers))));
  for (std::int64_t a = std::max<std::int64_t>(1, side / 2); a <= side; ++a) {
    for (std::int64_t b = a; b <= 2 * a; ++b) {
      const std::int64_t c = std::max(b, (routers + a * b - 1) / (a * b));
      const std::int64_t room = a * b * c;
      if (c > 2 * a || (least > 0 && (room > least || (room == least && c >= best[2])))) continue;
      best = {a, b, c};
      least = room;
    }
  }
  return {static_cast<int>(best[0]), static_cast<int>(best[1]), static_cast<int>(best[2])};
}

void read_dimensions(const Node& dimensions, NodeCounts counts, ClusterFabric& fabric) {
  std::int64_t routers = 1;
  for (const Node& size : dimensions.elements()) {
    fabric.direct.dimensions.push_back(positive_count(size));
    routers = std::min<std::int64_t>(routers * fabric.direct.dimensions.back(), most_gpus);
  }
  constexpr std::size_t most_dimensions = 8;
  if (fabric.direct.dimensions.empty() || fabric.direct.dimensions.size() > most_dimensions) {
    dimensions.fail_expected(fmt::format("a list of 1 to {} sizes", most_dimensions));
  }
  if (routers * fabric.nodes_per_leaf < counts.nodes) {
    dimensions.fail(fmt::format("these dimensions have room for {} nodes, found {}",
                                routers * fabric.nodes_per_leaf, counts.nodes));
  }
}

void read_torus(const Node& node, NodeCounts counts, ClusterFabric& fabric) {
  read_nodes_per_leaf(node, counts, fabric);
  if (const auto dimensions = node.find("dimensions")) {
    read_dimensions(*dimensions, counts, fabric);
  } else {
    fabric.direct.dimensions =
        cubic((counts.nodes + fabric.nodes_per_leaf - 1) / fabric.nodes_per_leaf);
  }
  fabric.direct.cables = static_cast<int>(
      node.integer_or("cables", 1, 4096, fabric.nodes_per_leaf * std::max(1, counts.nics)));
}

/// Refuses counts of other kinds of fabric.
void only_of_shape(const Node& node, FabricKind kind) {
  for (const ShapeKey& each : shape_keys) {
    if (each.family == family_of(kind)) continue;
    if (const auto found = node.find(each.key)) {
      found->fail(
          fmt::format("does not apply to a fabric of kind {}", word_of(fabric_kind_words, kind)));
    }
  }
}

}  // namespace

std::vector<std::string> drop_other_shapes(Json& fabric, const Json& kind,
                                           const std::vector<std::string>& kept) {
  std::vector<std::string> dropped;
  const auto known = kind.is_string()
                         ? value_of(fabric_kind_words, kind.get_ref<const std::string&>())
                         : std::nullopt;
  for (const ShapeKey& each : shape_keys) {
    if (!known || each.family == family_of(*known) || !fabric.contains(each.key)) continue;
    if (std::ranges::find(kept, each.key) != kept.end()) continue;
    fabric.erase(each.key);
    dropped.emplace_back(each.key);
    if (fabric.contains("sources")) fabric["sources"].erase(std::string{"/"} + each.key);
  }
  return dropped;
}

void read_shape(const Node& node, NodeCounts counts, ClusterFabric& fabric) {
  only_of_shape(node, fabric.kind);
  switch (family_of(fabric.kind)) {
    case ShapeFamily::tree:
      return read_tree(node, counts, fabric);
    case ShapeFamily::dragonfly:
      return read_dragonfly(node, counts, fabric);
    case ShapeFamily::grid:
      return read_torus(node, counts, fabric);
  }
}

namespace {

std::string assumed_dragonfly(const Node& node, NodeCounts counts, const ClusterFabric& fabric) {
  if (node.has("routers_per_group") && node.has("global_cables")) return {};
  const std::string source =
      node.has("nodes_per_leaf")
          ? "balanced as in Kim et al. 2008"
          : fmt::format(
                "the {} ports of a router are divided as in a Slingshot group, 16 + 31 + 17 of 64 "
                "(De Sensi et al. 2020)",
                fabric.leaf.ports);
  return fmt::format(
      "a dragonfly of {} routers per group, each with {} NICs and {} cables to other groups: {}",
      fabric.direct.routers_per_group, std::int64_t{fabric.nodes_per_leaf} * counts.nics,
      fabric.direct.global_cables, source);
}

}  // namespace

std::string assumed_shape(const Node& node, NodeCounts counts, const ClusterFabric& fabric) {
  if (fabric.kind == FabricKind::none || is_tree(fabric.kind)) return {};
  if (fabric.kind == FabricKind::dragonfly) return assumed_dragonfly(node, counts, fabric);
  if (node.has("dimensions")) return {};
  return fmt::format(
      "a {} of {} routers, the three-dimensional one nearest to a cube that has room for all "
      "nodes, "
      "as tori of TPU v4 (Jouppi et al. 2023)",
      word_of(fabric_kind_words, fabric.kind), fmt::join(fabric.direct.dimensions, " x "));
}

int longest_path(const ClusterFabric& fabric, NodeCounts counts) {
  const auto leaves = [&](int nodes_per_leaf) {
    return (counts.nodes + nodes_per_leaf - 1) / nodes_per_leaf;
  };
  const int units = leaves(fabric.nodes_per_leaf);
  if (fabric.kind == FabricKind::dragonfly) {
    return units == 1 ? 2 : units <= fabric.direct.routers_per_group ? 3 : 5;
  }
  if (is_tree(fabric.kind)) {
    const bool meet_below = units == 1 && (fabric.kind != FabricKind::rail_optimised || fabric.pxn);
    if (meet_below || fabric.tree.levels == 1) return 2;
    const int rails = has_rails(fabric.kind) ? std::max(1, counts.nics) : 1;
    return fabric.tree.levels == 2 || units * rails <= fabric.tree.leaves_per_pod ? 4 : 6;
  }
  const bool wraps = fabric.kind == FabricKind::torus;
  return std::accumulate(
      fabric.direct.dimensions.begin(), fabric.direct.dimensions.end(), 2,
      [wraps](int sum, int size) { return sum + (wraps ? size / 2 : size - 1); });
}

}  // namespace orrery::hardware
