#pragma once
// Fat trees of any height, and the fabrics built from them. A device's way up depends on the
// destination alone (D-mod-k), so all traffic to one device meets at its root and, over all
// destinations, every cable of a level gets the same number of them. Leaves out adaptive routing
// and failed cables.
// Source  shapes: Ohring, Ibel, Das & Kumar 1995, "On generalized fat trees";
//         routes: Zahavi 2010, "D-Mod-K routing providing non-blocking traffic for shift
//         permutations on real life fat trees"

#include <vector>

#include "sim/topology/topology.hpp"

namespace orrery {

/// One level of switches over devices or over the level below.
struct FatTreeLevel {
  int children = 1;       // m: vertices of the level below under one switch of this level
  int parents = 1;        // w: switches of this level above one vertex of the level below
  Bandwidth bandwidth{};  // of each cable to the level below, per direction
  Time latency{};         // of each cable
};

/// XGFT(h; m_1..m_h; w_1..w_h). Only the switches that the devices need are built.
struct FatTree {
  int devices = 0;
  std::vector<FatTreeLevel> levels{};  // from the leaves up
};

/// With W_l = w_1 ... w_l and M_l = m_1 ... m_l: the route climbs to the first level l at which
/// from / M_l = to / M_l, takes the (to / W_i mod w_{i+1})-th cable up from level i, and comes down
/// the only way that there is.
/// Errors  no devices, no levels, children or parents < 1, devices > M_h: ContractError
Interconnect fat_tree(const FatTree& shape);

/// What people say of a fabric.
struct ClosFabric {
  int devices = 0;
  int devices_per_leaf = 0;
  int leaves_per_pod = 0;         // three levels only
  double oversubscription = 1.0;  // a leaf's bandwidth down over its bandwidth up
  Bandwidth bandwidth{};          // of a device, per direction
  Time latency{};                 // of each cable
};

/// Every leaf has one cable to each spine. There are floor(devices_per_leaf / oversubscription)
/// spines, at least one; where that is not whole, the cables to them are wider in proportion, so
/// that the oversubscription is exactly what was asked for.
/// Errors  a count < 1, oversubscription not above 0: ContractError
FatTree two_level(const ClosFabric& fabric);
/// Pods of leaves under aggregation switches, as the two levels above; each of these has
/// `leaves_per_pod` cables to cores of its own: nothing is oversubscribed above the leaf.
FatTree three_level(const ClosFabric& fabric);

/// Rail r of every node on the leaves of rail r.
struct RailFabric {
  int nodes = 0;
  int rails = 0;           // network ports of a node
  int nodes_per_leaf = 0;  // a unit: so many nodes share one leaf per rail
  double oversubscription = 1.0;
  Bandwidth bandwidth{};  // of one port, per direction
  Time latency{};         // of each cable
};

/// Device `node * rails + rail`. Two levels: the leaves of all rails and units meet at the spines,
/// so two ports of one rail and unit meet at their leaf and all others at a spine. If the last unit
/// is not full, its leaves have unused ports.
/// Errors  as `two_level`
Interconnect rail_optimised(const RailFabric& fabric);

}  // namespace orrery
