#pragma once
// Clusters as the published systems are, with the collective law's constants: 8 x A100 and 8 x H100
// nodes on InfiniBand, 8 x L40S on PCIe. Constants from fits to public nccl-tests logs.

#include "hardware/cluster/cluster.hpp"
#include "models/network/collectives/collective.hpp"

namespace orrery::models::testing {

inline hardware::Cluster a100_cluster(int nodes = 1) {
  hardware::Cluster cluster;
  cluster.nodes = nodes;
  cluster.node.gpus = 8;
  cluster.node.scale_up = hardware::ScaleUp::nvswitch;
  cluster.node.scale_up_bandwidth = 300_GBps;
  cluster.node.nics = 8;
  cluster.node.nic_bandwidth = 25_GBps;
  cluster.fabric.kind = hardware::FabricKind::fat_tree;
  cluster.fabric.efficiency = 0.92;
  cluster.fabric.gather_efficiency = 0.8;
  cluster.fabric.nodes_per_leaf = 16;
  cluster.collectives.base = 9300_ns;
  cluster.collectives.step = 810_ns;
  cluster.collectives.ring_rate = 240_GBps;
  cluster.collectives.network = 10_us;
  cluster.collectives.half_size = 95_us;
  cluster.collectives.half_size_growth = 88_us;
  cluster.collectives.growth = 0.05;
  return cluster;
}

inline hardware::Cluster h100_cluster(int nodes = 1) {
  hardware::Cluster cluster = a100_cluster(nodes);
  cluster.node.scale_up_bandwidth = 450_GBps;
  cluster.node.switch_reduces = true;
  cluster.node.nic_bandwidth = 50_GBps;
  cluster.collectives.base = 4600_ns;
  cluster.collectives.step = 820_ns;
  cluster.collectives.ring_rate = 360_GBps;
  cluster.collectives.switch_rate = 274_GBps;
  return cluster;
}

inline hardware::Cluster l40s_node() {
  hardware::Cluster cluster = a100_cluster(1);
  cluster.node.scale_up = hardware::ScaleUp::pcie;
  cluster.node.scale_up_bandwidth = 32_GBps;
  cluster.collectives.base = 4700_ns;
  cluster.collectives.step = 1050_ns;
  cluster.collectives.ring_rate = 20_GBps;
  cluster.collectives.group_rates = {{.ranks = 2, .ring = 20_GBps, .low_latency = 16_GBps},
                                     {.ranks = 4, .ring = 5_GBps, .low_latency = 14_GBps},
                                     {.ranks = 8, .ring = 2_GBps, .low_latency = 2_GBps}};
  return cluster;
}

/// A cluster where only bytes cost: no latency, no ramp, all of the line rate.
inline hardware::Cluster only_bytes(hardware::Cluster cluster) {
  cluster.collectives.base = {};
  cluster.collectives.step = {};
  cluster.collectives.network = {};
  cluster.collectives.half_size = {};
  cluster.collectives.half_size_growth = {};
  cluster.fabric.efficiency = 1;
  cluster.fabric.gather_efficiency = 1;
  return cluster;
}

/// All ranks of whole nodes.
inline GroupShape whole_nodes(int nodes, int gpus = 8) {
  return {.ranks = nodes * gpus,
          .nodes = nodes,
          .ranks_per_node = gpus,
          .groups_per_node = 1,
          .node_stride = 1};
}

inline double bus_gigabytes_per_second(Collective collective, Bytes size, const GroupShape& group,
                                       const hardware::Cluster& cluster) {
  const double bytes = static_cast<double>(size.count()) * bus_factor(collective, group.ranks);
  return bytes / seconds(price(collective, size, group, cluster).time) / 1e9;
}

inline double microseconds(Time time) {
  return seconds(time) * 1e6;
}

}  // namespace orrery::models::testing
