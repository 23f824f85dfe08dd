// Measured all-reduces correct the cost models of their siblings.
#include "models/network/collectives/carried.hpp"

#include <catch2/catch.hpp>

#include "models/network/collectives/fitted_line.hpp"
#include "models/network/collectives/measured.hpp"
#include "tests/models/network/collectives/clusters.hpp"

namespace orrery::models {
namespace {

using testing::bus_gigabytes_per_second;
using testing::h100_cluster;
using testing::whole_nodes;

constexpr Collective siblings[] = {Collective::all_gather, Collective::reduce_scatter,
                                   Collective::broadcast,  Collective::reduce,
                                   Collective::all_to_all, Collective::send_receive};

GroupShape group_of(Collective collective, int nodes) {
  if (collective != Collective::send_receive) return whole_nodes(nodes);
  return {.ranks = 2, .nodes = 2, .ranks_per_node = 1};
}

/// All-reduces of 64 ranks on 8 nodes: `slower` times what the cost model says.
hardware::Cluster reduces(double slower, Bytes most = 8_GiB) {
  hardware::Cluster cluster = h100_cluster(8);
  const hardware::Cluster plain = cluster;
  std::vector<hardware::SizeTable::Point> points;
  for (Bytes size{8}; size <= most; size = size * 2) {
    const Time model = price(Collective::all_reduce, size, whole_nodes(8), plain).time;
    points.push_back({size, scaled(model, slower)});
  }
  cluster.measured_collectives = {{"all_reduce", 64, 8, hardware::SizeTable{points}}};
  return cluster;
}

/// As nccl-tests would print it: a latency and a bus bandwidth.
hardware::Cluster line(Time latency, double bus, int ranks = 64, int nodes = 8) {
  hardware::Cluster cluster = h100_cluster(8);
  std::vector<hardware::SizeTable::Point> points;
  for (Bytes size{8}; size <= 8_GiB; size = size * 2) {
    const double bytes = static_cast<double>(size.count()) * 2 * (ranks - 1) / ranks;
    points.push_back({size, latency + from_seconds(bytes / bus)});
  }
  cluster.measured_collectives = {{"all_reduce", ranks, nodes, hardware::SizeTable{points}}};
  return cluster;
}

}  // namespace

TEST_CASE("A line through measured times is their latency and their rate") {
  const FittedLine both = fitted_line({{1000_B, 11_us}, {10000_B, 20_us}, {100000_B, 110_us}});
  CHECK(both.latency == Approx(10e-6));
  CHECK(both.per_byte == Approx(1e-9));
  // Neither is negative: large sizes alone show no latency, small ones no rate.
  CHECK(fitted_line({{1_GB, 1_s}, {2_GB, 3_s}}).latency == 0);
  CHECK(fitted_line({{8_B, 11_us}, {16_B, 10_us}}).per_byte == 0);
}

TEST_CASE("All-reduces as fast as their cost model change no sibling") {
  const hardware::Cluster plain = h100_cluster(8), measured = reduces(1);
  for (const Collective each : siblings) {
    for (const Bytes size : {1_KiB, 16_MiB, 4_GiB}) {
      INFO(name(each) << " of " << size.count());
      const GroupShape group = group_of(each, 8);
      // One part in a million: the ratio of two fits to the same times.
      CHECK(ratio(price(each, size, group, measured).time, price(each, size, group, plain).time) ==
            Approx(1).epsilon(1e-6));
    }
  }
}

TEST_CASE("One slow row at either end of a log is carried over to nothing") {
  const hardware::Cluster plain = h100_cluster(8);
  hardware::Cluster measured = reduces(1);
  auto points = measured.measured_collectives[0].times.points();
  points.front().second = points.front().second * 3;
  points.back().second = points.back().second * 3;
  measured.measured_collectives[0].times = hardware::SizeTable{points};
  for (const Bytes size : {1_KiB, 4_GiB}) {
    // The times of 8, 16 and 32 B, and the rates of 2, 4 and 8 GiB, differ by less than 1 %.
    CHECK(ratio(price(Collective::all_gather, size, whole_nodes(8), measured).time,
                price(Collective::all_gather, size, whole_nodes(8), plain).time) ==
          Approx(1).epsilon(0.01));
  }
}

TEST_CASE("All-reduces slower than their cost model slow every sibling, of every size") {
  const hardware::Cluster plain = h100_cluster(8), measured = reduces(3);
  for (const Collective each : siblings) {
    Time last{};
    for (Bytes size{1}; size <= 32_GiB; size = size * 4) {
      INFO(name(each) << " of " << size.count());
      const GroupShape group = group_of(each, 8);
      const Time slow = price(each, size, group, measured).time;
      CHECK(slow > price(each, size, group, plain).time);
      CHECK(slow >= last);
      last = slow;
    }
  }
}

// The cost model's own ramp is 1 % of the largest all-reduces of a table.
constexpr double ramp = 0.02;

TEST_CASE("A gather has the bus bandwidth that all-reduces show, if that is less") {
  const GroupShape group = whole_nodes(8);
  const auto bus = [&](Collective each, double measured) {
    return bus_gigabytes_per_second(each, 16_GiB, group, line(60_us, measured));
  };
  const auto modelled = [&](Collective each) {
    return bus_gigabytes_per_second(each, 16_GiB, group, h100_cluster(8));
  };
  CHECK(bus(Collective::all_gather, 239e9) == Approx(239).epsilon(ramp));
  CHECK(bus(Collective::reduce_scatter, 100e9) == Approx(100).epsilon(ramp));
  // Between the models of a gather (318 GB/s) and of an all-reduce (367): no reason to change the
  // gather's.
  CHECK(bus(Collective::all_gather, 350e9) ==
        Approx(modelled(Collective::all_gather)).epsilon(1e-3));
  // Faster than the model by 5 %: so are the siblings.
  CHECK(bus(Collective::all_gather, 1.05e9 * modelled(Collective::all_reduce)) ==
        Approx(1.05 * modelled(Collective::all_gather)).epsilon(ramp));
  // Of an all-to-all 7/8 of what a rank has leaves its node: of 8 ranks, at 100 GB/s.
  CHECK(seconds(price(Collective::all_to_all, 1_GB, group, line(60_us, 100e9)).time) ==
        Approx(8 * 0.875 / 100).epsilon(ramp));
}

TEST_CASE("What is carried over keeps to the NICs of a group of another shape") {
  // 120 of 400 GB/s on eight NICs: 15 of 50 on one.
  const GroupShape one{.ranks = 8, .nodes = 8, .ranks_per_node = 1, .groups_per_node = 8};
  CHECK(bus_gigabytes_per_second(Collective::all_gather, 16_GiB, one, line(60_us, 120e9)) ==
        Approx(15).epsilon(ramp));
}

TEST_CASE("A table of small all-reduces shows a latency and no rate") {
  const GroupShape group = whole_nodes(8);
  const Time plain = price(Collective::all_gather, 4_GiB, group, h100_cluster(8)).time;
  const Time measured = price(Collective::all_gather, 4_GiB, group, reduces(3, 64_KiB)).time;
  CHECK(measured > plain);
  CHECK(measured < plain + 1_ms);
}

TEST_CASE("One measured all-reduce is no line, and carries nothing over") {
  hardware::Cluster cluster = h100_cluster(8);
  cluster.measured_collectives = {{"all_reduce", 64, 8, hardware::SizeTable{{{1_GiB, 1_s}}}}};
  const GroupShape group = whole_nodes(8);
  CHECK(price(Collective::all_gather, 1_GiB, group, cluster).time ==
        price(Collective::all_gather, 1_GiB, group, h100_cluster(8)).time);
  CHECK_FALSE(table_note(Collective::all_gather, 1_GiB, group, cluster));
}

TEST_CASE("A collective's own table comes before that of all-reduces") {
  hardware::Cluster cluster = line(60_us, 100e9);
  cluster.measured_collectives.push_back(
      {"all_gather", 64, 8, hardware::SizeTable{{{8_B, 50_us}, {1_GiB, 5_ms}}}});
  CHECK(price(Collective::all_gather, 1_GiB, whole_nodes(8), cluster).time == 5_ms);
}

TEST_CASE("What is carried over is said, with the constants") {
  CHECK(*table_note(Collective::all_gather, 1_GiB, whole_nodes(8), line(60_us, 240e9)) ==
        "all_gather of 64 ranks, 8 a node: not measured; its cost model with 1.3 times the latency "
        "and 1.32 times the time on links, as the all_reduce table of 64 ranks, 8 a node shows (60 "
        "us, 240 GB/s of bus bandwidth)");
}

}  // namespace orrery::models
