#include <catch2/catch.hpp>

#include "models/network/collectives/collective.hpp"
#include "tests/models/network/collectives/clusters.hpp"

using namespace orrery;
using namespace orrery::models;
using namespace orrery::models::testing;

TEST_CASE("An all-to-all in a node sends all but its own share") {
  // 800 MB on 8 A100: V = 700 MB. 9.3 + 2.8 us; 0.15 * sqrt(700e6 / 300) = 229.13 us;
  // 700e6 / (1.05 * 240e9) = 2777.78 us; 100e6 / (2.4 * 300e9) = 138.89 us.
  const auto result = price(Collective::all_to_all, 800_MB, whole_nodes(1), a100_cluster());
  CHECK(microseconds(result.time) == Approx(12.1 + 229.13 + 2777.78 + 138.89).margin(0.02));
  CHECK(result.algorithm == "pairwise");
  CHECK(result.limited_by == "scale-up");
}

TEST_CASE("An all-to-all across nodes is limited by the bytes that leave each node") {
  // 2 x 8 H100, 1.6 GB each: 8/16 of it leaves, 8 ranks, 6.4 GB over 0.8 * 400 GB/s = 20 ms;
  // inside 1.5e9 / (1.05 * 360e9) = 3.97 ms next to it. 2.8 us of the exchange.
  const auto result =
      price(Collective::all_to_all, 1600_MB, whole_nodes(2), only_bytes(h100_cluster(2)));
  CHECK(microseconds(result.time) == Approx(20002.8).epsilon(1e-9));
  CHECK(result.limited_by == "network");
}

TEST_CASE("An all-to-all across leaves feels oversubscription where a ring hardly does") {
  // 32 nodes, 16 per leaf, 4:1. Of each node's bytes 16/31 leave the leaf: 1 / (4 * 16/31) of the
  // rate is left. A contiguous ring crosses the leaf's border once and keeps its rate.
  auto flat = only_bytes(h100_cluster(32));
  auto lean = flat;
  lean.fabric.oversubscription = 4;
  const auto group = whole_nodes(32);
  const auto time = [&](Collective collective, const hardware::Cluster& cluster) {
    return microseconds(price(collective, 16_GB, group, cluster).time) -
           (collective == Collective::all_to_all ? 2.8 : 0);
  };
  CHECK(time(Collective::all_to_all, lean) / time(Collective::all_to_all, flat) ==
        Approx(64.0 / 31).epsilon(1e-6));
  CHECK(time(Collective::all_gather, lean) == time(Collective::all_gather, flat));
}
