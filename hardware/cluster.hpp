#pragma once
// What a cluster is: nodes of GPUs inside one NVLink domain each, joined by a fabric. All nodes
// are alike; a slow node or a degraded link is a scenario's perturbation, not a cluster.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hardware/gpu.hpp"
#include "hardware/measured_collectives.hpp"
#include "sim/quantity.hpp"

namespace orrery::hardware {

enum class ScaleUp : std::uint8_t { none, pcie, mesh, nvswitch, xgmi, shared_memory };

/// GPUs that reach each other without the network: a server, or a rack such as NVL72.
struct NodeType {
  std::string name;  // "dgx-a100-80gb"
  Gpu gpu;
  int gpus = 1;
  ScaleUp scale_up = ScaleUp::none;
  Bandwidth scale_up_bandwidth{};  // per GPU and direction
  bool switch_reduces = false;     // NVLink SHARP (NVLS)
  int nics = 0;
  Bandwidth nic_bandwidth{};            // of one NIC, per direction
  Power host_power{};                   // node without its GPUs, under load
  std::optional<Money> purchase_price;  // of the node with its GPUs and NICs
};

enum class FabricKind : std::uint8_t { none, fat_tree, rail_optimised, dragonfly, torus };

/// The switch that a fabric is built of; no ports: not known.
struct Switch {
  std::string name;  // "quantum-2"
  int ports = 0;
  Bandwidth bandwidth{};  // of one port and direction
  std::optional<Money> purchase_price;
};

/// The network between nodes and the class of latency that it has.
struct ClusterFabric {
  std::string name;
  FabricKind kind = FabricKind::none;
  int levels = 0;                  // switches' levels of a fat tree
  double oversubscription = 1.0;   // downlinks over uplinks at the leaf, 1 = full bisection
  Bandwidth bandwidth{};           // of one NIC and direction
  std::string latency_class;       // "infiniband", "efa-v2", "roce", "slingshot", ...
  Time latency{};                  // one small message between two nodes
  double efficiency = 0.9;         // share of NIC line rate that a large all-reduce reaches
  double gather_efficiency = 0.8;  // the same of all-gather and reduce-scatter
  Switch leaf;
  /// Nodes that share a leaf switch. Unless given: what the leaf's ports leave, with one port a
  /// node where rails part its NICs, else one for each NIC (two NICs of half a port's rate share
  /// one).
  int nodes_per_leaf = 16;
};

/// What a ring reaches among a few GPUs of one domain where that depends on how many they are:
/// PCIe trees and cube meshes, whose slowest hop is shared by more pairs in a larger group.
struct GroupRate {
  int ranks = 0;
  Bandwidth ring{};         // bus bandwidth of large messages
  Bandwidth low_latency{};  // of the LL protocol; 0: the cost model's share of scale_up_bandwidth
};

/// Constants of the collective cost model, per system (one domain) and per fabric; what each means
/// is written next to its formula in models/network/collectives/.
///   one domain: latency = base + step * steps;   across: + network * log2(nodes) ...
struct CollectiveConstants {
  Time base{};            // a: once per call
  Time step{};            // h: per ring step inside the domain
  Bandwidth ring_rate{};  // bus bandwidth of the ring over scale_up; 0: 0.8 of its bandwidth
  std::vector<GroupRate> group_rates;  // by increasing ranks; empty: ring_rate for every group
  Bandwidth switch_rate{};            // NVLS all-reduce: time = size / rate for any number of ranks
                                      // (H100 274 GB/s: 480 of bus bandwidth at 8 ranks); 0 without
  Time network{};                     // net: per tree level or ring node hop across nodes
  Time half_size{};                   // G of the across-nodes cost model at two nodes
  double growth = 0.05;               // b: share of NIC sum for mid sizes
  Time half_size_growth{88'000'000};  // g: added to G by each doubling of the nodes (88 us, NDR)
  std::string source;
};

/// What one node reads and writes of files, in order and in large blocks; nothing: not measured.
struct Storage {
  std::optional<Bandwidth> read, write;
};

struct Cluster {
  std::string name;
  NodeType node;
  int nodes = 1;
  ClusterFabric fabric;
  CollectiveConstants collectives;
  std::vector<CollectiveTable> measured_collectives;  // preferred to the cost models
  Storage storage;
  std::optional<Price> price_per_gpu_hour;
  std::string price_source;  // with its date
  /// Defaults filled in, and the fallback curves that every user of this GPU depends on. One of
  /// another dtype, or of another GPU's attention kernel next to the GPU's own, concerns only who
  /// uses it and is reported by its `origin.borrowed`; `borrowings(gpu())` has all.
  std::vector<std::string> assumptions;
  int unconfirmed = 0;  // numbers of the whole cluster whose source is "unconfirmed"

  int gpus() const { return nodes * node.gpus; }
  const Gpu& gpu() const { return node.gpu; }
  /// What one NIC carries per direction.
  Bandwidth nic_bandwidth() const {
    return fabric.bandwidth.count() > 0 ? fabric.bandwidth : node.nic_bandwidth;
  }
  /// All NICs of one node, per direction.
  Bandwidth node_bandwidth() const { return nic_bandwidth() * static_cast<double>(node.nics); }
};

}  // namespace orrery::hardware
