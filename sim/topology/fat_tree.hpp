#pragma once
// Fat trees of any height, and the fabrics built from them. The path up is chosen by destination
// alone (D-mod-k: all traffic to one device meets at one root, and every cable of a level serves
// the same number of destinations), by hash, or as the least loaded cable when the flow starts.
// Packet spraying over all cables is modelled by trunks: the cables up from a switch are one link
// of their total bandwidth. Leaves out failed cables.
// Source  shapes: Ohring, Ibel, Das & Kumar 1995, "On generalized fat trees";
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
  int trees = 1;  // separate trees, not connected; the first ones have M_h devices each
};

/// With W_l = w_1 ... w_l and M_l = m_1 ... m_l: the route climbs to the first level l at which
/// from / M_l = to / M_l, takes the (to / W_i mod w_{i+1})-th cable up from level i, and descends
/// by the only path. By hash: at each level the cable that the hash selects. Least loaded: at each
/// level the cable whose more loaded direction, up or down, has the least load; the first among
/// equals.
/// Errors  no devices, no levels, children or parents < 1, devices > trees * M_h; a route between
///         two trees; least loaded without the load of every link: ContractError
Interconnect fat_tree(const FatTree& shape);

/// The cables up from one switch: separate links, or one trunk of their total bandwidth.
enum class Uplinks : std::uint8_t { cables, trunk };

/// A two- or three-level Clos network as data sheets describe it.
struct ClosFabric {
  int devices = 0;
  int devices_per_leaf = 0;
  int leaves_per_pod = 0;               // three levels only
  double oversubscription = 1.0;        // a leaf's bandwidth down over its bandwidth up
  double oversubscription_above = 1.0;  // the same of a spine; three levels only
  int spines = 0;                       // above a leaf; 0: derived from the oversubscription
  int cores = 0;                        // above each spine; 0: derived as for `spines`
  Uplinks uplinks = Uplinks::cables;
  Bandwidth bandwidth{};  // of a device, per direction
  Time latency{};         // of each cable
};

/// Every leaf has one cable to each spine. If `spines` is given, each cable has a device's
/// bandwidth and the oversubscription is ignored. Otherwise there are floor(devices_per_leaf /
/// oversubscription) spines, at least one; if the quotient is not whole, the cables are wider in
/// proportion, so that the oversubscription is exact.
/// Errors  a count < 1, oversubscription not above 0: ContractError
FatTree two_level(const ClosFabric& fabric);
/// Pods, each a two-level network with its own spines. Spine i of a pod has a cable to each of
/// `cores` core switches, which it shares only with spine i of the other pods.
FatTree three_level(const ClosFabric& fabric);

}  // namespace orrery
