// A cluster's own measured collectives come before any law.
#include "models/network/collectives/measured.hpp"

#include <catch2/catch.hpp>

#include "tests/models/network/collectives/clusters.hpp"

namespace orrery::models {
namespace {

using testing::a100_cluster;
using testing::bus_gigabytes_per_second;
using testing::h100_cluster;
using testing::whole_nodes;

constexpr GroupShape in_node(int ranks) {
  return {
      .ranks = ranks, .nodes = 1, .ranks_per_node = ranks, .groups_per_node = 1, .node_stride = 1};
}

hardware::Cluster measured_cluster(int nodes = 1) {
  hardware::Cluster cluster = a100_cluster(nodes);
  cluster.measured_collectives = {
      {"all_reduce", 4, 1, hardware::SizeTable{{{1_KiB, 30_us}, {1_MiB, 330_us}}}},
      {"all_gather", 2, 1, hardware::SizeTable{{{1_KiB, 10_us}, {1_MiB, 20_us}}}},
  };
  return cluster;
}

TEST_CASE("A collective that was measured takes the time that was measured") {
  const CollectiveTime time = price(Collective::all_reduce, 1_MiB, in_node(4), measured_cluster());
  CHECK(time.time == 330_us);
  CHECK(time.limited_by == "measured");
  CHECK(time.links.nvlink == 300_us);  // what exceeds the smallest size's 30 us
  CHECK(time.links.nic == 0_us);
  CHECK_FALSE(table_note(Collective::all_reduce, 1_MiB, in_node(4), measured_cluster()));
}

TEST_CASE("Other ranks scale the nearest table's latency by steps and the rest by traffic") {
  // 4 ranks: 6 steps, factor 3/2; 2 ranks: 2 steps, factor 1; 300 us beyond the latency.
  // t = 30 us * 2/6 + 300 us * 1/1.5 = 210 us
  CHECK(price(Collective::all_reduce, 1_MiB, in_node(2), measured_cluster()).time == 210_us);
  CHECK(table_note(Collective::all_reduce, 1_MiB, in_node(2), measured_cluster()) ==
        "all_reduce of 2 ranks: scaled from the table of 4 ranks by steps and traffic");
}

TEST_CASE("A size that a table does not reach is reported") {
  CHECK(table_note(Collective::all_gather, 2_MiB, in_node(2), measured_cluster()) ==
        "all_gather of 2 ranks: 2 MiB is outside its table (1 KiB to 1 MiB)");
  // Where rounding would make them the same, in bytes.
  CHECK(table_note(Collective::all_gather, Bytes{1048577}, in_node(2), measured_cluster()) ==
        "all_gather of 2 ranks: 1048577 B is outside its table (1024 B to 1048576 B)");
}

TEST_CASE("A table of one size says which, in bytes where the other one rounds to it") {
  hardware::Cluster cluster = a100_cluster();
  cluster.measured_collectives = {{.operation = "all_gather",
                                   .ranks = 2,
                                   .times = hardware::SizeTable{{{Bytes{1707008000}, 20_ms}}}}};
  CHECK(table_note(Collective::all_gather, Bytes{1707009024}, in_node(2), cluster) ==
        "all_gather of 2 ranks: 1707009024 B is not 1707008000 B, the only size of its table");
  CHECK(table_note(Collective::all_gather, 1_MiB, in_node(2), cluster) ==
        "all_gather of 2 ranks: 1 MiB is not 1.59 GiB, the only size of its table");
}

TEST_CASE("Operations without a table, and groups across nodes, keep to the law") {
  const hardware::Cluster plain = a100_cluster(2);
  const hardware::Cluster measured = measured_cluster(2);
  CHECK(price(Collective::gather, 1_MiB, in_node(4), measured).time ==
        price(Collective::gather, 1_MiB, in_node(4), plain).time);
  CHECK(price(Collective::all_reduce, 1_MiB, whole_nodes(2), measured).time ==
        price(Collective::all_reduce, 1_MiB, whole_nodes(2), plain).time);
  CHECK_FALSE(table_note(Collective::all_reduce, 1_MiB, whole_nodes(2), measured));
}

TEST_CASE("Siblings share the NICs after a measured table too") {
  hardware::Cluster cluster = a100_cluster(2);
  cluster.node.nics = 1;  // one NIC for all
  cluster.measured_collectives = {
      {"all_reduce", 2, 2, hardware::SizeTable{{{1_KiB, 30_us}, {1_MiB, 130_us}}}}};
  GroupShape alone{
      .ranks = 2, .nodes = 2, .ranks_per_node = 1, .groups_per_node = 1, .node_stride = 1};
  GroupShape with_siblings = alone;
  with_siblings.groups_per_node = 4;
  CHECK(price(Collective::all_reduce, 1_MiB, alone, cluster).time == 130_us);
  // Four share one NIC: 30 us + 4 * 100 us, and some ns for the one byte of a latency.
  CHECK(ratio(price(Collective::all_reduce, 1_MiB, with_siblings, cluster).time, 430_us) ==
        Approx(1).epsilon(1e-4));
}

/// As nccl-tests prints it: 60 us and a bus bandwidth, for 64 B to 16 GiB.
hardware::CollectiveTable log_of(Collective collective, int ranks, int nodes, double bus) {
  std::vector<hardware::SizeTable::Point> points;
  for (Bytes size{64}; size <= 16_GiB; size = size * 2) {
    const double bytes = static_cast<double>(size.count()) * bus_factor(collective, ranks);
    points.push_back({size, 60_us + from_seconds(bytes / bus)});
  }
  return {std::string{name(collective)}, ranks, nodes, hardware::SizeTable{points}};
}

constexpr GroupShape one_a_node(int nodes) {
  return {.ranks = nodes, .nodes = nodes, .ranks_per_node = 1, .groups_per_node = 8};
}

TEST_CASE("A table of eight ranks a node gives a rank alone on its node the rate of one NIC") {
  for (const auto each : {Collective::all_gather, Collective::reduce_scatter}) {
    hardware::Cluster cluster = h100_cluster(8);
    cluster.measured_collectives = {log_of(each, 64, 8, 220e9)};
    // 220 GB/s over eight NICs of 50 GB/s: 27.5 over one.
    CHECK(bus_gigabytes_per_second(each, 16_GiB, one_a_node(8), cluster) ==
          Approx(27.5).epsilon(1e-3));
    CHECK(table_note(each, 1_GiB, one_a_node(8), cluster) ==
          std::string{name(each)} +
              " of 8 ranks, 1 a node: scaled from the table of 64 ranks, 8 a node by the hops, "
              "bytes and NICs of the cost model");
    // The reverse: 44 of one NIC, 352 of eight. At 16 GiB the latency is 0.2 %.
    cluster.measured_collectives = {log_of(each, 8, 8, 44e9)};
    CHECK(bus_gigabytes_per_second(each, 16_GiB, whole_nodes(8), cluster) ==
          Approx(352).epsilon(5e-3));
    CHECK(bus_gigabytes_per_second(each, 16_GiB, one_a_node(8), cluster) ==
          Approx(44).epsilon(1e-3));
  }
}

TEST_CASE("A table of the group's ranks per node is preferred to one of its ranks or nodes") {
  hardware::Cluster cluster = h100_cluster(8);
  cluster.measured_collectives = {log_of(Collective::all_gather, 16, 8, 60e9),
                                  log_of(Collective::all_gather, 32, 4, 250e9)};
  CHECK(table_of(Collective::all_gather, whole_nodes(2), cluster)->ranks == 32);
  CHECK(table_of(Collective::all_gather, one_a_node(8), cluster)->ranks == 16);
}

TEST_CASE("Two nodes' all-reduces, which cross once, say no more than the NICs of eight") {
  // 480 GB/s of bus bandwidth on two nodes, above the 400 of their NICs; the cost model has 92 % of
  // those from three nodes on.
  hardware::Cluster cluster = h100_cluster(8);
  cluster.measured_collectives = {log_of(Collective::all_reduce, 16, 2, 480e9)};
  const auto bus = [&](int nodes) {
    return bus_gigabytes_per_second(Collective::all_reduce, 16_GiB, whole_nodes(nodes), cluster);
  };
  CHECK(bus(2) == Approx(480).epsilon(0.001));
  CHECK(bus(8) > 300);
  CHECK(bus(8) < 400);
}

TEST_CASE("A table faster than the wire is held to the wire, and the note says so") {
  hardware::Cluster cluster = h100_cluster(8);
  cluster.measured_collectives = {log_of(Collective::all_gather, 64, 8, 500e9)};
  const CollectiveTime one = price(Collective::all_gather, 64_GB, whole_nodes(8), cluster);
  CHECK(one.time == 140_ms);  // 7/8 of 64 GB over 8 * 50 GB/s
  CHECK(one.fluid == 140_ms);
  CHECK(
      table_note(Collective::all_gather, 64_GB, whole_nodes(8), cluster) ==
      "all_gather of 64 ranks, 8 a node: its table has 126 ms for 59.6 GiB, faster than the links "
      "of this cluster carry the bytes; 140 ms taken");
}

TEST_CASE("Eight GPUs of a mesh say what two of them have: one link of seven") {
  // 300 GB/s over 7 links of 64 GB/s is 43 over one.
  hardware::Cluster cluster = a100_cluster();
  cluster.node.scale_up = hardware::ScaleUp::xgmi;
  cluster.node.scale_up_bandwidth = 448_GBps;
  cluster.collectives.ring_rate = 336_GBps;
  cluster.measured_collectives = {log_of(Collective::all_reduce, 8, 1, 300e9)};
  CHECK(bus_gigabytes_per_second(Collective::all_reduce, 16_GiB, in_node(2), cluster) ==
        Approx(300.0 / 7).epsilon(1e-3));
}

TEST_CASE(
    "A first row that took longer than the next ones makes no time of another shape shorter") {
  // 8 B in 90 us, 16 B in 20: nothing of the second is beyond the latency.
  hardware::Cluster cluster = h100_cluster(8);
  cluster.measured_collectives = {
      {"all_gather", 64, 8, hardware::SizeTable{{{8_B, 90_us}, {16_B, 20_us}, {1_GiB, 5_ms}}}}};
  CHECK(price(Collective::all_gather, 16_B, whole_nodes(8), cluster).time == 20_us);
  const Time one = price(Collective::all_gather, 16_B, one_a_node(8), cluster).time;
  CHECK(one > 5_us);
  CHECK(one < 20_us);
}

TEST_CASE("A table of more ranks a node than a node has GPUs is not used") {
  hardware::Cluster cluster = h100_cluster(8);
  cluster.measured_collectives = {log_of(Collective::all_gather, 32, 2, 100e9)};
  CHECK(table_of(Collective::all_gather, whole_nodes(2), cluster) == nullptr);
  CHECK(price(Collective::all_gather, 1_GiB, whole_nodes(2), cluster).limited_by != "measured");
}

TEST_CASE("A log of many ranks that send to their next prices one message") {
  const GroupShape pair{.ranks = 2, .nodes = 2, .ranks_per_node = 1};
  hardware::Cluster cluster = h100_cluster(8);
  cluster.measured_collectives = {log_of(Collective::send_receive, 64, 8, 40e9)};
  CHECK(price(Collective::send_receive, 1_GB, pair, cluster).time ==
        cluster.measured_collectives[0].times.at(1_GB));
  CHECK_FALSE(table_note(Collective::send_receive, 1_GB, pair, cluster));
}

TEST_CASE("One rank, or no byte, takes no time whatever was measured") {
  CHECK(price(Collective::all_reduce, 1_MiB, in_node(1), measured_cluster()).time == Time{});
  CHECK(price(Collective::all_reduce, Bytes{0}, in_node(4), measured_cluster()).time == Time{});
}

TEST_CASE("Every operation that a table may be of is a collective, and has a price") {
  for (const std::string_view each : hardware::measured_operations) {
    const auto collective = value_of(collective_words, each);
    REQUIRE(collective);
    const GroupShape group = in_node(*collective == Collective::send_receive ? 2 : 4);
    CHECK(price(*collective, 1_MiB, group, measured_cluster()).time > Time{});
  }
}

}  // namespace
}  // namespace orrery::models
