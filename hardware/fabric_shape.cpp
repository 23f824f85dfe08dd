#include "hardware/fabric_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <vector>

#include "hardware/reading.hpp"

namespace orrery::hardware {

namespace {

constexpr int most_levels = 3;

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
/// quarter on a balanced dragonfly (Kim et al. 2008: a = 2 p = 2 h).
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

void read_dragonfly(const Node& node, NodeCounts counts, ClusterFabric& fabric) {
  read_nodes_per_leaf(node, counts, fabric);
  const std::int64_t ports = std::int64_t{fabric.nodes_per_leaf} * std::max(1, counts.nics);
  const int balanced = static_cast<int>(std::min<std::int64_t>(ports, 1024));
  fabric.direct.routers_per_group =
      static_cast<int>(node.integer_or("routers_per_group", 1, 4096, 2 * balanced));
  fabric.direct.global_cables =
      static_cast<int>(node.integer_or("global_cables", 1, 4096, balanced));
  const std::int64_t of_group =
      std::int64_t{fabric.direct.routers_per_group} * fabric.nodes_per_leaf;
  const std::int64_t groups = (counts.nodes + of_group - 1) / of_group;
  const std::int64_t most =
      std::int64_t{fabric.direct.routers_per_group} * fabric.direct.global_cables + 1;
  if (groups > most) {
    node.fail(fmt::format("{} nodes make {} groups of {}; global_cables connect at most {} groups",
                          counts.nodes, groups, of_group, most));
  }
}

void read_torus(const Node& node, NodeCounts counts, ClusterFabric& fabric) {
  read_nodes_per_leaf(node, counts, fabric);
  std::int64_t routers = 1;
  const Node dimensions = node["dimensions"];
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
  fabric.direct.cables = static_cast<int>(
      node.integer_or("cables", 1, 4096, fabric.nodes_per_leaf * std::max(1, counts.nics)));
}

/// Refuses keys of other kinds of fabric.
void only_of_shape(const Node& node, FabricKind kind, std::initializer_list<const char*> others) {
  for (const char* key : others) {
    if (const auto found = node.find(key)) {
      found->fail(
          fmt::format("does not apply to a fabric of kind {}", word_of(fabric_kind_words, kind)));
    }
  }
}

}  // namespace

void read_shape(const Node& node, NodeCounts counts, ClusterFabric& fabric) {
  if (is_tree(fabric.kind)) {
    only_of_shape(node, fabric.kind,
                  {"dimensions", "cables", "routers_per_group", "global_cables"});
    return read_tree(node, counts, fabric);
  }
  only_of_shape(node, fabric.kind, {"levels", "oversubscription", "spines", "leaves_per_pod"});
  if (fabric.kind == FabricKind::dragonfly) {
    only_of_shape(node, fabric.kind, {"dimensions", "cables"});
    return read_dragonfly(node, counts, fabric);
  }
  only_of_shape(node, fabric.kind, {"routers_per_group", "global_cables"});
  read_torus(node, counts, fabric);
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
