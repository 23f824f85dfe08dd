#pragma once
// The network between nodes: its shape, how it routes and what it costs. What each count of a shape
// means is written in hardware/catalogue/README.md; models/network/fabric/ builds links from it.

#include <optional>
#include <string>
#include <vector>

#include "sim/quantity.hpp"
#include "sim/words.hpp"

namespace orrery::hardware {

enum class FabricKind : std::uint8_t {
  none,
  fat_tree,
  rail_optimised,  // NIC r of every node on leaves of rail r, which meet above
  rail_only,       // rails that never meet: PXN carries between them
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

/// How a flow finds its way where several cables lead on.
enum class Routing : std::uint8_t {
  d_mod_k,  // by its destination's number: InfiniBand's
  ecmp,     // by a hash of its ends and number
  spray,    // packets over all cables up, at its ideal: these cables are one trunk
  adaptive  // the emptiest when it starts
};
inline constexpr Words<Routing, 4> routing_words{{{Routing::d_mod_k, "d-mod-k"},
                                                  {Routing::ecmp, "ecmp"},
                                                  {Routing::spray, "spray"},
                                                  {Routing::adaptive, "adaptive"}}};

/// The switch that a fabric is built of; no ports: not known.
struct Switch {
  std::string name;  // "quantum-2"
  int ports = 0;
  Bandwidth bandwidth{};  // of one port and direction
  std::optional<Money> purchase_price;
};

/// What only a fat tree or rails have; all of them are stated or follow from what is.
struct TreeShape {
  int levels = 2;
  double oversubscription_above = 1.0;  // of the switches above leaves, where three levels are
  int spines = 0;                       // above a leaf; 0: what its oversubscription leaves
  int cores = 0;                        // above each spine of a pod; 0: as above
  int leaves_per_pod = 0;               // three levels: leaves under one set of spines
};

/// What only a dragonfly, a torus or a mesh has; `nodes_per_leaf` nodes share a router.
struct DirectShape {
  int routers_per_group = 0;      // of a dragonfly
  int global_cables = 0;          // of each router, to other groups
  std::vector<int> dimensions{};  // of a torus or mesh, in routers
  int cables = 1;                 // between two neighbours of a torus or mesh
};

/// The network between nodes and the class of latency that it has.
struct ClusterFabric {
  std::string name;
  FabricKind kind = FabricKind::none;
  double oversubscription = 1.0;   // downlinks over uplinks at the leaf, 1 = full bisection
  Bandwidth bandwidth{};           // of one NIC and direction
  std::string latency_class;       // "infiniband", "efa-v2", "roce", "slingshot", ...
  Time latency{};                  // one small message between two nodes
  double efficiency = 0.9;         // share of NIC line rate that a large all-reduce reaches
  double gather_efficiency = 0.8;  // the same of all-gather and reduce-scatter
  bool switch_reduces = false;     // SHARP: switches add what passes through them (CollNet)
  Switch leaf;
  /// Nodes that share a leaf switch or router. Unless given: what the leaf's ports leave, with one
  /// port a node where rails part its NICs, else one for each NIC (two NICs of half a port's rate
  /// share one).
  int nodes_per_leaf = 16;
  TreeShape tree;
  DirectShape direct;
  Routing routing = Routing::d_mod_k;
  bool pxn = true;  // on rails, data leaves by the NIC of its destination's rail
  /// Of one cable with the switch behind it; then a message's wire latency is that of its path.
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
