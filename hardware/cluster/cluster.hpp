#pragma once
// Description of a cluster: nodes of GPUs, one NVLink domain each, joined by a fabric. All nodes
// are alike; a slow node or a degraded link is a perturbation of a scenario, not part of the
// cluster.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hardware/cluster/fabric.hpp"
#include "hardware/cluster/protocol_constants.hpp"
#include "hardware/cluster/site.hpp"
#include "hardware/curves/measured_collectives.hpp"
#include "hardware/gpu/gpu.hpp"
#include "sim/quantity.hpp"
#include "sim/words.hpp"

namespace orrery::hardware {

enum class ScaleUp : std::uint8_t { none, pcie, mesh, nvswitch, xgmi, shared_memory };
inline constexpr Words<ScaleUp, 6> scale_up_words{{{ScaleUp::none, "none"},
                                                   {ScaleUp::pcie, "pcie"},
                                                   {ScaleUp::mesh, "mesh"},
                                                   {ScaleUp::nvswitch, "nvswitch"},
                                                   {ScaleUp::xgmi, "xgmi"},
                                                   {ScaleUp::shared_memory, "shared_memory"}}};

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
  std::vector<std::vector<int>> gpu_nics;  // nearest NICs of each GPU; empty: NICs in equal parts
  std::vector<NodeCable> cables;           // empty: not known
  Power host_power{};                      // node without its GPUs, under load
  std::optional<Bytes> host_memory;        // of the host; nothing: not stated
  std::optional<Bandwidth> host_memory_bandwidth;  // of its processors together
  std::optional<Bandwidth> host_adam;   // memory traffic of Adam on the host, of all ranks together
  std::optional<Money> purchase_price;  // of the node with its GPUs and NICs
};

/// Bandwidth of a ring by group size inside one domain, where it depends on the size: PCIe trees
/// and cube meshes, whose slowest hop is shared by more pairs in a larger group.
struct GroupRate {
  int ranks = 0;
  Bandwidth ring{};         // bus bandwidth of large messages
  Bandwidth low_latency{};  // of the LL protocol; 0: the cost model's share of scale_up_bandwidth
};

/// Constants of the collective cost model, per system (one domain) and per fabric; each is
/// explained next to its formula in models/network/collectives/.
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
  double growth = 0.05;               // b: share of the summed NIC bandwidth for mid sizes
  Time half_size_growth{88'000'000};  // g: added to G by each doubling of the nodes (88 us, NDR)
  ProtocolConstants protocols;        // the same on all machines; free of cost if ideal
  std::string source;

  /// Sets every constant of the cost models to 0 and every share to 1, so that only bytes over
  /// links and `network` cost time. For clusters on which the textbook closed forms hold.
  void make_ideal() {
    base = step = half_size = half_size_growth = Time{};
    protocols = ProtocolConstants::ideal();
  }
};

/// File bandwidth of one node, sequential in large blocks, and the size of its drives; absent: not
/// known.
struct Storage {
  std::optional<Bandwidth> read, write;
  std::optional<Bytes> capacity;
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
  /// Defaults filled in, and the fallback curves that every simulation of this GPU uses. Not listed
  /// are a curve of another dtype of the same GPU, and another GPU's attention kernel next to the
  /// GPU's own: they matter only to those who use them, and `origin.fallback_from` reports them.
  /// `fallback_notes(gpu())` lists all.
  std::vector<std::string> assumptions;
  int unconfirmed = 0;  // numbers of the whole cluster whose source is "unconfirmed"

  int gpus() const { return nodes * node.gpus; }
  const Gpu& gpu() const { return node.gpu; }
  /// Bandwidth of one NIC, per direction.
  Bandwidth nic_bandwidth() const {
    return fabric.bandwidth.count() > 0 ? fabric.bandwidth : node.nic_bandwidth;
  }
  /// Bandwidth of all NICs of one node, per direction.
  Bandwidth node_bandwidth() const { return nic_bandwidth() * static_cast<double>(node.nics); }
};

}  // namespace orrery::hardware
