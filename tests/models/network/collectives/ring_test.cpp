#include <catch2/catch.hpp>

#include "models/network/collectives/collective.hpp"
#include "tests/models/network/collectives/clusters.hpp"

using namespace orrery;
using namespace orrery::models;
using namespace orrery::models::testing;

TEST_CASE("A large ring in a node takes its bus bytes over the ring and its own shard") {
  // 8 GB all-reduce on 8 GPUs without latency, Simple:
  //   V = 8e9 * 14/8 = 14e9;  V / (0.976 * 240e9) = 59.7678 ms
  //   own shard 1e9 / (1.49 * 300e9) = 2.2371 ms
  const auto result =
      price(Collective::all_reduce, 8_GB, whole_nodes(1), only_bytes(a100_cluster()));
  CHECK(microseconds(result.time) == Approx(59767.760 + 2237.136).epsilon(1e-6));
  CHECK(result.algorithm == "ring");
  CHECK(result.protocol == Protocol::simple);
  CHECK(result.limited_by == "scale-up");
}

TEST_CASE("A tiny ring in a node is its base and one low-latency step per hop") {
  // 8 B on 8 A100: l = 9.3 + 14 * 0.81 = 20.64 us; V = 14 B is below 0.01 us of ramp.
  const auto result = price(Collective::all_reduce, 8_B, whole_nodes(1), a100_cluster());
  CHECK(microseconds(result.time) == Approx(20.64).margin(0.01));
  CHECK(result.protocol == Protocol::ll);
  CHECK(result.limited_by == "latency");
}

TEST_CASE("A gather has half the steps of an all-reduce") {
  // l = 9.3 + 7 * 0.81 = 14.97 us
  const auto result = price(Collective::all_gather, 8_B, whole_nodes(1), a100_cluster());
  CHECK(microseconds(result.time) == Approx(14.97).margin(0.01));
}

TEST_CASE("Middle sizes take the protocol of 128-byte lines") {
  // 4 MiB all-reduce on 8 A100, V = 7.34 MB: LL 20.64 * 1.108 + 86.8 = 109.6 us;
  // LL128 50.2 + 34.2 + 1.2 = 85.6 us; Simple 60.3 + 31.3 + 1.2 = 92.8 us.
  const auto result = price(Collective::all_reduce, 4_MiB, whole_nodes(1), a100_cluster());
  CHECK(result.protocol == Protocol::ll128);
  CHECK(microseconds(result.time) == Approx(85.55).margin(0.1));
}

TEST_CASE("In the bandwidth term a ring all-reduce is a reduce-scatter and an all-gather") {
  // The rank's own shard is copied once by each, so the halves cost one copy more.
  const auto cluster = only_bytes(a100_cluster());
  const auto group = whole_nodes(1);
  const double halves = microseconds(price(Collective::reduce_scatter, 8_GB, group, cluster).time) +
                        microseconds(price(Collective::all_gather, 8_GB, group, cluster).time);
  const double own_copy = 1e9 / (1.49 * 300e9) * 1e6;
  const double whole = microseconds(price(Collective::all_reduce, 8_GB, group, cluster).time);
  CHECK(halves - own_copy == Approx(whole).epsilon(1e-9));

  // Across three nodes there is no such copy.
  const auto nodes = whole_nodes(3);
  CHECK(microseconds(price(Collective::all_reduce, 24_GB, nodes, cluster).time) ==
        Approx(microseconds(price(Collective::reduce_scatter, 24_GB, nodes, cluster).time) +
               microseconds(price(Collective::all_gather, 24_GB, nodes, cluster).time))
            .epsilon(1e-9));
}

TEST_CASE("A gather across nodes walks every hop once and fills its share of the NICs") {
  // 4 nodes x 8 A100, 32 GB, no ramp: l = 9.3 + 28 * 0.81 + 3 * 10 = 61.98 us;
  // V = 31 GB over 0.8 * 200 GB/s = 193.75 ms.
  auto cluster = a100_cluster(4);
  cluster.collectives.half_size = {};
  cluster.collectives.half_size_growth = {};
  const auto result = price(Collective::all_gather, 32_GB, whole_nodes(4), cluster);
  CHECK(microseconds(result.time) == Approx(193750 + 61.98).epsilon(1e-9));
  CHECK(result.limited_by == "network");
  CHECK(result.algorithm == "ring");
  CHECK_FALSE(result.protocol.has_value());
}

TEST_CASE("A broadcast passes every byte over every link once") {
  // 8 GB over 0.976 * 240 GB/s, no shard of its own.
  const auto result =
      price(Collective::broadcast, 8_GB, whole_nodes(1), only_bytes(a100_cluster()));
  CHECK(microseconds(result.time) == Approx(8e9 / (0.976 * 240e9) * 1e6).epsilon(1e-9));
  CHECK(result.time ==
        price(Collective::reduce, 8_GB, whole_nodes(1), only_bytes(a100_cluster())).time);
}

TEST_CASE("A PCIe ring is as slow as measured for its number of GPUs") {
  // 1 GB all-gather on 8: V = 0.875e9 over 0.976 * 2 GB/s = 448.3 ms, but LL at 2 GB/s 437.5 ms.
  // On 3 the rate of 4 holds: V = 2/3e9 over 5 GB/s, LL's 14 for small messages notwithstanding.
  const auto node = only_bytes(l40s_node());
  CHECK(microseconds(price(Collective::all_gather, 1_GB, whole_nodes(1), node).time) ==
        Approx(437500).epsilon(1e-9));
  CHECK(microseconds(price(Collective::all_gather, 1_GB, whole_nodes(1, 3), node).time) ==
        Approx(1e9 * 2 / 3 / 5e9 * 1e6).epsilon(1e-9));
}

TEST_CASE("A ring without a measured rate reaches four fifths of its link") {
  auto cluster = only_bytes(a100_cluster());
  const auto measured = price(Collective::all_gather, 8_GB, whole_nodes(1), cluster);
  cluster.collectives.ring_rate = {};  // 0.8 * 300 = 240 GB/s
  CHECK(price(Collective::all_gather, 8_GB, whole_nodes(1), cluster).time == measured.time);
}

TEST_CASE("In a mesh a group uses only the links that lead to its members") {
  // Two of eight GPUs joined one to one: 240 / 7 GB/s; V = 4 GB of 8 over 0.976 of it, and the own
  // shard of 4 GB over 1.49 * 300 GB/s. All eight use all links.
  auto mesh = only_bytes(a100_cluster());
  const auto all = price(Collective::all_gather, 8_GB, whole_nodes(1), mesh);
  mesh.node.scale_up = hardware::ScaleUp::xgmi;
  CHECK(price(Collective::all_gather, 8_GB, whole_nodes(1), mesh).time == all.time);
  const auto pair = candidates(Collective::all_gather, 8_GB, whole_nodes(1, 2), mesh).back();
  CHECK(microseconds(pair.time) ==
        Approx((4e9 / (0.976 * 240e9 / 7) + 4e9 / (1.49 * 300e9)) * 1e6).epsilon(1e-9));
}

TEST_CASE("A PCIe group of a measured size has that size's low-latency rate, not the next one's") {
  // 1 MiB all-reduce among n of 8 L40S: V = 2 (n-1)/n MiB, with LL at 16 GB/s for two ranks (below
  // the ring's 20), at the ring's 5 for four (below 14), and at 5 for three as well.
  const auto low_latency = [](int ranks) {
    for (const auto& one :
         candidates(Collective::all_reduce, 1_MiB, whole_nodes(1, ranks), l40s_node())) {
      if (one.algorithm == "ring" && one.protocol == Protocol::ll) return one.fluid;
    }
    return Time{};
  };
  CHECK(microseconds(low_latency(2)) == Approx(1048576 / 16e9 * 1e6).epsilon(1e-6));
  CHECK(microseconds(low_latency(4)) == Approx(1.5 * 1048576 / 5e9 * 1e6).epsilon(1e-6));
  CHECK(microseconds(low_latency(3)) == Approx(4.0 / 3 * 1048576 / 5e9 * 1e6).epsilon(1e-6));
}
