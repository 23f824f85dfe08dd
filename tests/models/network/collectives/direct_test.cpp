#include <catch2/catch.hpp>

#include "models/network/collectives/collective.hpp"
#include "tests/models/network/collectives/clusters.hpp"

using namespace orrery;
using namespace orrery::models;
using namespace orrery::models::testing;

namespace {

const GroupShape inside{.ranks = 2, .nodes = 1, .ranks_per_node = 2};

GroupShape across(int siblings) {
  return {.ranks = 2, .nodes = 2, .ranks_per_node = 1, .groups_per_node = siblings};
}

}  // namespace

TEST_CASE("A message inside a node crosses one link") {
  // 90 MB on H100: 4.6 + 2.8 us; sqrt(90e6 / 450) = 447.2 -> 67.08 us; over 0.92 * 360 GB/s
  // 271.74 us.
  const auto result = price(Collective::send_receive, 90_MB, inside, h100_cluster());
  CHECK(microseconds(result.time) == Approx(7.4 + 67.08 + 271.74).margin(0.01));
  CHECK(result.algorithm == "direct");
}

TEST_CASE("A message between nodes takes the network's latency and its NIC") {
  // 46 MB at 0.8 * 0.92 * 50 GB/s = 1250 us, and 4.6 + 2.8 + 10.
  const auto result = price(Collective::send_receive, 46_MB, across(8), h100_cluster(2));
  CHECK(microseconds(result.time) == Approx(1267.4).epsilon(1e-9));
  CHECK(result.limited_by == "network");
}

TEST_CASE("Eight senders over eight NICs do not disturb each other, over one NIC they share it") {
  auto cluster = only_bytes(h100_cluster(2));
  const auto time = [&](int siblings) {
    return microseconds(price(Collective::send_receive, 1_GB, across(siblings), cluster).time);
  };
  // 1 GB over 0.8 * 50 GB/s, and 2.8 us that are no constant of the cluster.
  CHECK(time(1) == Approx(25002.8).epsilon(1e-9));
  CHECK(time(8) == Approx(25002.8).epsilon(1e-9));
  cluster.node.nics = 1;
  CHECK(time(1) == Approx(25002.8).epsilon(1e-9));
  CHECK(time(8) == Approx(200002.8).epsilon(1e-9));
}

TEST_CASE("A GPU with four NICs of its own sends over all of them") {
  // 32 x 12.5 GB/s for 8 GPUs: 0.8 * 50 GB/s each.
  auto cluster = only_bytes(h100_cluster(2));
  cluster.node.nics = 32;
  cluster.node.nic_bandwidth = Bandwidth{12.5e9};
  CHECK(microseconds(price(Collective::send_receive, 1_GB, across(8), cluster).time) ==
        Approx(25002.8).epsilon(1e-9));
}

TEST_CASE("A stage under another leaf is reached through the oversubscribed uplinks") {
  auto cluster = only_bytes(h100_cluster(64));
  cluster.fabric.oversubscription = 2;
  cluster.fabric.nodes_per_leaf = 16;
  GroupShape pair = across(8);
  const auto time = [&] {
    return microseconds(price(Collective::send_receive, 1_GB, pair, cluster).time);
  };
  // Neighbours 16 nodes apart or more: every node's bytes leave the leaf, half rate. 10 apart: 10
  // of 16 nodes send over the border, 16/10 / 2 of the rate. 1 apart: one of 16 does, full rate.
  pair.node_stride = 1;
  CHECK(time() == Approx(25002.8).epsilon(1e-9));
  pair.node_stride = 10;
  CHECK(time() == Approx(31252.8).epsilon(1e-9));
  pair.node_stride = 16;
  CHECK(time() == Approx(50002.8).epsilon(1e-9));
  pair.node_stride = 32;
  CHECK(time() == Approx(50002.8).epsilon(1e-9));
  cluster.nodes = 16;  // all under one leaf
  pair.node_stride = 8;
  CHECK(time() == Approx(25002.8).epsilon(1e-9));
}
