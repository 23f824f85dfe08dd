#pragma once
// The network between nodes: shape, routing and cost constants. hardware/catalogue/README.md
// explains each count of a shape; models/network/fabric/ builds links from it.

#include <optional>
#include <string>
#include <vector>

#include "sim/quantity.hpp"
#include "sim/words.hpp"

namespace orrery::hardware {

enum class FabricKind : std::uint8_t {
  none,
  fat_tree,
  rail_optimised,  // NIC r of every node is on leaves of rail r; spines join rails
  rail_only,       // rails are not connected: data changes rail by PXN
  dragonfly,
  torus,
  mesh
};
inline constexpr Words<FabricKind, 7> fabric_kind_words{
    {{FabricKind::none, "none"},
     {FabricKind::fat_tree, "fat_tree"},
     {FabricKind::rail_optimised, "rail_optimised"},
     {FabricKind::rail_only, "rail_only"},
     {FabricKind::dragonfly, "dragonfly"},
     {FabricKind::torus, "torus"},
     {FabricKind::mesh, "mesh"}}};

/// How a flow's path is chosen among equal-cost cables.
enum class Routing : std::uint8_t {
  d_mod_k,  // by the number of the destination, as on InfiniBand
  ecmp,     // by a hash of endpoints and flow number
  spray,    // ideal packet spraying: all cables up from a switch are one trunk
  adaptive  // the least loaded cable when the flow starts
};
inline constexpr Words<Routing, 4> routing_words{{{Routing::d_mod_k, "d-mod-k"},
                                                  {Routing::ecmp, "ecmp"},
                                                  {Routing::spray, "spray"},
                                                  {Routing::adaptive, "adaptive"}}};

/// The type of switch that a fabric is built of; 0 ports: not known.
struct Switch {
  std::string name;  // "quantum-2"
  int ports = 0;
  Bandwidth bandwidth{};  // of one port and direction
  std::optional<Money> purchase_price;
};

/// Fields of fat trees and rails only; each is stated or derived from those that are.
struct TreeShape {
  int levels = 2;
  double oversubscription_above = 1.0;  // of the spines, with three levels
  int spines = 0;                       // above a leaf; 0: derived from the oversubscription
  int cores = 0;                        // above each spine of a pod; 0: derived likewise
  int leaves_per_pod = 0;               // three levels: leaves under one set of spines
};

/// Fields of a dragonfly, a torus or a mesh only; `nodes_per_leaf` nodes share a router.
struct DirectShape {
  int routers_per_group = 0;      // of a dragonfly
  int global_cables = 0;          // of each router, to other groups
  std::vector<int> dimensions{};  // of a torus or mesh, in routers
  int cables = 1;                 // between two neighbours of a torus or mesh
};

/// The network between nodes, with its latency class.
struct ClusterFabric {
  std::string name;
  FabricKind kind = FabricKind::none;
  double oversubscription = 1.0;   // downlinks over uplinks at the leaf, 1 = full bisection
  Bandwidth bandwidth{};           // of one NIC and direction
  std::string latency_class;       // "infiniband", "efa-v2", "roce", "slingshot", ...
  Time latency{};                  // one small message between two nodes
  double efficiency = 0.9;         // share of NIC line rate that a large all-reduce reaches
  double gather_efficiency = 0.8;  // the same of all-gather and reduce-scatter
  bool switch_reduces = false;     // SHARP: in-network reduction (CollNet)
  Switch leaf;
  /// Nodes that share a leaf switch or router. Default: derived from the leaf's ports, of which a
  /// node takes one on rails and otherwise one per NIC (two NICs of half a port's rate share one).
  int nodes_per_leaf = 16;
  TreeShape tree;
  DirectShape direct;
  Routing routing = Routing::d_mod_k;
  bool pxn = true;  // on rails, data leaves by the NIC of its destination's rail
  /// Latency of one cable and the switch after it. If given, a message's wire latency is the sum
  /// along its path.
  std::optional<Time> hop_latency;
  int longest_path = 2;  // cables between the two nodes that are farthest apart
};

constexpr bool has_rails(FabricKind kind) {
  return kind == FabricKind::rail_optimised || kind == FabricKind::rail_only;
}
constexpr bool is_tree(FabricKind kind) {
  return kind == FabricKind::fat_tree || has_rails(kind);
}

}  // namespace orrery::hardware
