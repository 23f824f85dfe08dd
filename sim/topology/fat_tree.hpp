#pragma once
// Fat trees of any height, and the fabrics built from them. A device's way up depends on the
// destination alone (D-mod-k), so all traffic to one device meets at its root and, over all
// destinations, every cable of a level gets the same number of them; or it is hashed, or takes the
// emptiest cable when it starts. Packets sprayed over all cables are a tree of trunks: the cables
// up from a switch as one, of their sum. Leaves out failed cables. Source  shapes: Ohring, Ibel,
// Das & Kumar 1995, "On generalized fat trees";
//         routes: Zahavi 2010, "D-Mod-K routing providing non-blocking traffic for shift
//         permutations on real life fat trees"

#include <cstdint>
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
  int trees = 1;                       // that no cable joins; the first ones have M_h devices each
};

/// With W_l = w_1 ... w_l and M_l = m_1 ... m_l: the route climbs to the first level l at which
/// from / M_l = to / M_l, takes the (to / W_i mod w_{i+1})-th cable up from level i, and comes down
/// the only way that there is. By hash: any cable, of those the hash's. Least loaded: at each level
/// the cable whose way up or down, whichever is fuller, is the emptiest; the first of equals.
/// Errors  no devices, no levels, children or parents < 1, devices > trees * M_h; a route between
///         two trees; least loaded without the load of every link: ContractError
Interconnect fat_tree(const FatTree& shape);

/// The cables up from one switch: each for itself, or all of them one trunk.
enum class Uplinks : std::uint8_t { cables, trunk };

/// What people say of a fabric.
struct ClosFabric {
  int devices = 0;
  int devices_per_leaf = 0;
  int leaves_per_pod = 0;               // three levels only
  double oversubscription = 1.0;        // a leaf's bandwidth down over its bandwidth up
  double oversubscription_above = 1.0;  // of a switch above leaves; three levels only
  int spines = 0;                       // above a leaf; 0: what the oversubscription leaves
  int cores = 0;                        // above each of these spines, 0: as above
  Uplinks uplinks = Uplinks::cables;
  Bandwidth bandwidth{};  // of a device, per direction
  Time latency{};         // of each cable
};

/// Every leaf has one cable to each spine: of a device's bandwidth where `spines` is given, and
/// then the oversubscription is not read. Else there are floor(devices_per_leaf / oversubscription)
/// spines, at least one; where that is not whole, the cables to them are wider in proportion, so
/// that the oversubscription is exactly what was asked for.
/// Errors  a count < 1, oversubscription not above 0: ContractError
FatTree two_level(const ClosFabric& fabric);
/// Pods of leaves under spines of their own, as the two levels above; each of these has a cable to
/// `cores` that only the spines of its number have in the other pods.
FatTree three_level(const ClosFabric& fabric);

}  // namespace orrery
