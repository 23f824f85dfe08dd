#include <catch2/catch.hpp>

#include "models/network/collectives/collective.hpp"
#include "tests/models/network/collectives/clusters.hpp"

using namespace orrery;
using namespace orrery::models;
using namespace orrery::models::testing;

TEST_CASE("A tiny all-reduce across nodes climbs and descends one chain and a tree") {
  // 4 nodes x 8 H100: 4.6 + 2 * 7 * 0.82 + 10 * log2(4) = 36.08 us.
  const auto result = price(Collective::all_reduce, 8_B, whole_nodes(4), h100_cluster(4));
  CHECK(microseconds(result.time) == Approx(36.08).margin(0.01));
  CHECK(result.algorithm == "nvls_tree");
}

TEST_CASE("Without a switch that reduces the tree has no NVLS") {
  CHECK(price(Collective::all_reduce, 8_B, whole_nodes(4), a100_cluster(4)).algorithm == "tree");
}

TEST_CASE("A large all-reduce on many nodes fills the NICs and climbs the ramp") {
  // 16 nodes, 16 GB: V = 16e9 * 254/128 = 31.75e9; over 0.92 * 400 GB/s 86 277.2 us.
  // Latency 4.6 + 11.48 + 40 = 56.08 us. Ramp: full 95 + 3 * 88 = 359 us, empty
  // 31.75e9 / (0.05 * 400e9) = 1 587 500 us, together 358.92 us.
  const auto result = price(Collective::all_reduce, 16_GB, whole_nodes(16), h100_cluster(16));
  CHECK(microseconds(result.time) == Approx(86277.17 + 56.08 + 358.92).epsilon(1e-6));
  CHECK(result.limited_by == "network");
}

TEST_CASE("On two nodes the data crosses once each way") {
  // One GPU per node, nothing but bytes: 10 GB over 50 GB/s, as a ring of two also takes.
  auto cluster = only_bytes(h100_cluster(2));
  const GroupShape pair{.ranks = 2, .nodes = 2, .ranks_per_node = 1, .groups_per_node = 8};
  CHECK(price(Collective::all_reduce, 10_GB, pair, cluster).time == 200_ms);

  // Eight per node: a ring's V = 1.875 x size crosses, the tree's size only: 10 GB at 8 x 25 GB/s
  // would take 50 ms; the 240 GB/s inside A100 nodes allow V / (0.9 * 240) = 86.8 ms.
  const auto a100 =
      price(Collective::all_reduce, 10_GB, whole_nodes(2), only_bytes(a100_cluster(2)));
  CHECK(microseconds(a100.time) == Approx(18.75e9 / 216e9 * 1e6).epsilon(1e-9));
  CHECK(a100.limited_by == "scale-up");
}

TEST_CASE("From three nodes on a group of one rank per node has its own NIC's bandwidth") {
  // V = 10 GB * 2 * 3/4 = 15 GB over 50 GB/s.
  const GroupShape group{.ranks = 4, .nodes = 4, .ranks_per_node = 1, .groups_per_node = 8};
  CHECK(price(Collective::all_reduce, 10_GB, group, only_bytes(h100_cluster(4))).time == 300_ms);
}
