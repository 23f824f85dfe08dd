#pragma once
// What a cluster is: nodes of GPUs inside one NVLink domain each, joined by a fabric. All nodes
// are alike; a slow node or a degraded link is a scenario's perturbation, not a cluster.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hardware/fabric.hpp"
#include "hardware/gpu.hpp"
#include "hardware/measured_collectives.hpp"
#include "hardware/protocol_constants.hpp"
#include "hardware/site.hpp"
#include "sim/quantity.hpp"

namespace orrery::hardware {

enum class ScaleUp : std::uint8_t { none, pcie, mesh, nvswitch, xgmi, shared_memory };

/// One cable inside a node, both directions alike. Its ends are "gpu3", "nic0", or any other name:
/// a switch or a socket.
struct NodeCable {
  std::string one, other;
  Bandwidth bandwidth{};  // per direction
};

/// GPUs that reach each other without the network: a server, or a rack such as NVL72.
struct NodeType {
  std::string name;  // "dgx-a100-80gb"
  Gpu gpu;
  int gpus = 1;
  ScaleUp scale_up = ScaleUp::none;
  Bandwidth scale_up_bandwidth{};  // per GPU and direction
  bool switch_reduces = false;     // NVLink SHARP (NVLS)
  int nics = 0;
  Bandwidth nic_bandwidth{};               // of one NIC, per direction
  std::vector<std::vector<int>> gpu_nics;  // of each GPU, the nearest; empty: NICs in equal parts
  std::vector<NodeCable> cables;           // empty: not known
  Power host_power{};                      // node without its GPUs, under load
  std::optional<Money> purchase_price;     // of the node with its GPUs and NICs
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
  Bandwidth switch_rate{};  // NVLS all-reduce: time = size / rate for any number of ranks
                            // (H100 274 GB/s: 480 of bus bandwidth at 8 ranks); 0 without
  /// net: per tree level or ring node hop across nodes, wire included. Where the fabric has a
  /// hop_latency it is that of its longest path.
  Time network{};
  Time half_size{};                   // G of the across-nodes cost model at two nodes
  double growth = 0.05;               // b: share of NIC sum for mid sizes
  Time half_size_growth{88'000'000};  // g: added to G by each doubling of the nodes (88 us, NDR)
  ProtocolConstants protocols;        // what all machines share; an ideal one has none
  std::string source;

  /// Nothing but bytes over links and `network` costs time: each constant of a cost model is 0,
  /// each share 1. For clusters on which closed forms hold.
  void make_ideal() {
    base = step = half_size = half_size_growth = Time{};
    protocols = ProtocolConstants::ideal();
  }
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
  Site site;
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
