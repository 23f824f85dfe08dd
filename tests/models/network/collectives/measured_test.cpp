// A cluster's own measured collectives come before any law.
#include "models/network/collectives/measured.hpp"

#include <catch2/catch.hpp>

#include "tests/models/network/collectives/clusters.hpp"

namespace orrery::models {
namespace {

using testing::a100_cluster;
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
}

TEST_CASE("Operations without a table, and groups across nodes, keep to the law") {
  const hardware::Cluster plain = a100_cluster(2);
  const hardware::Cluster measured = measured_cluster(2);
  CHECK(price(Collective::broadcast, 1_MiB, in_node(4), measured).time ==
        price(Collective::broadcast, 1_MiB, in_node(4), plain).time);
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
  // Four share one NIC: 30 us + 4 * 100 us.
  CHECK(price(Collective::all_reduce, 1_MiB, with_siblings, cluster).time == 430_us);
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
