// No collective is faster than the wires that its bytes must cross, whatever was measured.
#include "models/network/collectives/wire_bound.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "hardware/catalogue.hpp"
#include "models/network/collectives/measured.hpp"
#include "tests/models/network/collectives/clusters.hpp"

namespace orrery::models {
namespace {

using collectives::wire_bound;
using testing::a100_cluster;
using testing::h100_cluster;
using testing::whole_nodes;

constexpr Collective measurable[] = {Collective::all_reduce,     Collective::all_gather,
                                     Collective::reduce_scatter, Collective::broadcast,
                                     Collective::reduce,         Collective::all_to_all,
                                     Collective::send_receive};

constexpr GroupShape one_rank_a_node(int nodes, int siblings = 1) {
  return {.ranks = nodes, .nodes = nodes, .ranks_per_node = 1, .groups_per_node = siblings};
}

Time bound(Collective collective, Bytes size, const GroupShape& group,
           const hardware::Cluster& cluster, LinkSharing sharing = LinkSharing::with_siblings) {
  return wire_bound({collective, size, group, cluster, sharing});
}

}  // namespace

TEST_CASE("What a collective must send is its bytes over its node's NICs") {
  // 8 nodes of 8 GPUs with NICs of 50 GB/s, 64 GB: of all-gathers and reduce-scatters 56 GB enter
  // or leave a node, of an all-reduce 112 GB, of a broadcast all.
  const auto cluster = h100_cluster(8);
  const GroupShape whole = whole_nodes(8);
  CHECK(bound(Collective::all_gather, 64_GB, whole, cluster) == 140_ms);
  CHECK(bound(Collective::reduce_scatter, 64_GB, whole, cluster) == 140_ms);
  CHECK(bound(Collective::all_reduce, 64_GB, whole, cluster) == 280_ms);
  CHECK(bound(Collective::broadcast, 64_GB, whole, cluster) == 160_ms);
  // Each of 8 ranks on a node sends 7/8 of its 8 GB to the other nodes.
  CHECK(bound(Collective::all_to_all, 8_GB, whole, cluster) == 140_ms);
  // One GPU on a node has one NIC, whether or not seven siblings use the others ...
  CHECK(bound(Collective::all_gather, 8_GB, one_rank_a_node(8), cluster) == 140_ms);
  CHECK(bound(Collective::all_gather, 8_GB, one_rank_a_node(8, 8), cluster) == 140_ms);
  // ... and a part of it where the node has fewer, if siblings are counted.
  auto four = cluster;
  four.node.nics = 4;
  CHECK(bound(Collective::all_gather, 8_GB, one_rank_a_node(8, 8), four) == 280_ms);
  CHECK(bound(Collective::all_gather, 8_GB, one_rank_a_node(8, 8), four, LinkSharing::alone) ==
        140_ms);
}

TEST_CASE("Switches that reduce need each byte once, on their own wires only") {
  auto cluster = h100_cluster(8);
  // NVLink SHARP: 45 GB over 450 GB/s. A ring of 8 on A100 sends 2 * 7/8 of 30 GB over 300 GB/s.
  CHECK(bound(Collective::all_reduce, 45_GB, whole_nodes(1), cluster) == 100_ms);
  CHECK(bound(Collective::all_reduce, 30_GB, whole_nodes(1), a100_cluster()) == 175_ms);
  cluster.fabric.switch_reduces = true;
  CHECK(bound(Collective::all_reduce, 64_GB, whole_nodes(8), cluster) == 160_ms);
}

TEST_CASE("A GPU of a mesh reaches two others over two of its seven links") {
  auto mesh = a100_cluster();
  mesh.node.scale_up = hardware::ScaleUp::xgmi;
  mesh.node.scale_up_bandwidth = 448_GBps;
  GroupShape three{.ranks = 3, .ranks_per_node = 3};
  // Two thirds of 192 GB over 2 * 64 GB/s.
  CHECK(bound(Collective::all_gather, 192_GB, three, mesh) == 1_s);
  // Shared memory is no wire: a table of it may have any rate.
  mesh.node.scale_up = hardware::ScaleUp::shared_memory;
  CHECK(bound(Collective::all_gather, 192_GB, three, mesh) == 0_s);
}

TEST_CASE("NICs that several GPUs are near to count for each of them") {
  auto cluster = h100_cluster(2);
  cluster.node.nics = 2;
  CHECK(bound(Collective::send_receive, 50_GB, one_rank_a_node(2), cluster) == 1_s);
  cluster.node.gpu_nics.assign(8, {0, 1});
  CHECK(bound(Collective::send_receive, 50_GB, one_rank_a_node(2), cluster) == 500_ms);
}

namespace {

/// A group that a plan could make on this cluster: `ranks_per_node` on each of its nodes.
GroupShape random_group(std::mt19937_64& random, const hardware::Cluster& cluster,
                        Collective collective) {
  const int gpus = cluster.node.gpus;
  const bool across = gpus == 1 || random() % 2 == 0;
  const int nodes = across && cluster.node.nics > 0 ? 2 + static_cast<int>(random() % 40) : 1;
  int on_each = 1 + static_cast<int>(random() % static_cast<unsigned>(gpus));
  if (collective == Collective::send_receive) {
    return nodes > 1 ? GroupShape{.ranks = 2, .nodes = 2, .groups_per_node = on_each}
                     : GroupShape{.ranks = 2, .ranks_per_node = 2};
  }
  if (nodes == 1) on_each = std::max(2, on_each);
  return {.ranks = nodes * on_each,
          .nodes = nodes,
          .ranks_per_node = on_each,
          .groups_per_node = std::max(1, gpus / on_each)};
}

/// A log that no network can produce at one end of the range, and a very slow one at the other.
hardware::SizeTable random_table(std::mt19937_64& random) {
  const double rate = std::pow(10.0, 8 + static_cast<double>(random() % 60) / 10);
  std::vector<hardware::SizeTable::Point> points;
  for (std::int64_t size = 64; size <= std::int64_t{1} << 33; size *= 4) {
    points.push_back({Bytes{size}, 20_us + from_seconds(static_cast<double>(size) / rate)});
  }
  return hardware::SizeTable{points};
}

}  // namespace

TEST_CASE("No random log makes a random group faster than its busiest wire") {
  std::mt19937_64 random{7};
  int across = 0, by_wire = 0;
  for (const std::string& node : hardware::Catalogue::nodes()) {
    hardware::Cluster cluster = hardware::named_cluster(node);
    cluster.nodes = 64;
    if (cluster.node.gpus == 1 && cluster.node.nics == 0) continue;
    for (int i = 0; i < 60; ++i) {
      const Collective collective = measurable[random() % std::size(measurable)];
      const GroupShape group = random_group(random, cluster, collective);
      if (group.ranks < 2) continue;
      const GroupShape measured = random_group(random, cluster, collective);
      // Of the operation itself, or of the all-reduces that are carried over to it.
      const std::string operation{random() % 2 == 0 ? name(collective) : "all_reduce"};
      cluster.measured_collectives = {
          {operation, std::max(2, measured.ranks), measured.nodes, random_table(random)}};
      const Bytes size{std::int64_t{1} << (10 + random() % 24)};
      for (const LinkSharing sharing : {LinkSharing::with_siblings, LinkSharing::alone}) {
        const Time least = bound(collective, size, group, cluster, sharing);
        const CollectiveTime one = price(collective, size, group, cluster, {.sharing = sharing});
        INFO(fmt::format("{}: {} of {} on {} nodes, table of {} {} on {}", node, name(collective),
                         group.ranks, group.nodes, operation, measured.ranks, measured.nodes));
        CHECK(one.time >= least);
        // What flows of other groups are slowed by is the traffic itself.
        CHECK(one.fluid >= (one.limited_by == "measured" ? least : Time{}));
        across += group.nodes > 1 ? 1 : 0;
        by_wire += one.time == least ? 1 : 0;
      }
    }
  }
  CHECK(across > 500);
  CHECK(by_wire > 100);
}

TEST_CASE("The cost models keep to the wire by themselves") {
  std::mt19937_64 random{8};
  for (const std::string& node : hardware::Catalogue::nodes()) {
    hardware::Cluster cluster = hardware::named_cluster(node);
    cluster.nodes = 64;
    if (cluster.node.gpus == 1 && cluster.node.nics == 0) continue;
    for (int i = 0; i < 40; ++i) {
      const Collective collective = measurable[random() % std::size(measurable)];
      const GroupShape group = random_group(random, cluster, collective);
      if (group.ranks < 2) continue;
      const Time least = bound(collective, 16_GiB, group, cluster);
      for (const CollectiveTime& one : candidates(collective, 16_GiB, group, cluster)) {
        INFO(fmt::format("{}: {} {} of {} on {} nodes", node, one.algorithm, name(collective),
                         group.ranks, group.nodes));
        CHECK(one.time >= least);
      }
    }
  }
}

}  // namespace orrery::models
