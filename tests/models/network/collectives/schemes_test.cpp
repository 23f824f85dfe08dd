// Schemes that no catalogue cluster picks by itself: by hand, where only bytes and hops cost.

#include <catch2/catch.hpp>

#include "tests/models/network/collectives/clusters.hpp"

namespace orrery::models {
namespace {

using namespace testing;

/// 4 nodes of 8 H100: 400 GB/s of NICs and a ring of 360 GB/s inside; 10 us a hop across nodes.
hardware::Cluster plain_cluster() {
  auto cluster = only_bytes(h100_cluster(4));
  cluster.collectives.make_ideal();
  cluster.collectives.network = 10_us;
  return cluster;
}

double milliseconds_of(Collective collective, std::string_view algorithm,
                       const hardware::Cluster& cluster, const GroupShape& group) {
  const CollectivePricing named{.choice = {.algorithm = algorithm}};
  return seconds(price(collective, 3600_MB, group, cluster, named).time) * 1e3;
}

}  // namespace

TEST_CASE("Switches that add take every byte once, and only where the fabric has them") {
  auto cluster = plain_cluster();
  const CollectivePricing named{.choice = {.algorithm = "collnet"}};
  CHECK(candidates(Collective::all_reduce, 1_MB, whole_nodes(4), cluster, named).empty());
  cluster.fabric.switch_reduces = true;
  cluster.node.switch_reduces = false;
  // Inside, 2 * 31/32 * 3.6 GB at 360 GB/s take longer than 3.6 GB at 400 GB/s: 19.375 ms. With
  // links of twice the rate 9.6875 ms, still longer than 9; with four times the network limits.
  CHECK(milliseconds_of(Collective::all_reduce, "collnet", cluster, whole_nodes(4)) ==
        Approx(19.375 + 0.01).epsilon(1e-9));
  cluster.collectives.ring_rate = 1440_GBps;
  CHECK(milliseconds_of(Collective::all_reduce, "collnet", cluster, whole_nodes(4)) ==
        Approx(9 + 0.01).epsilon(1e-9));
  CHECK(price(Collective::all_reduce, 3600_MB, whole_nodes(4), cluster).algorithm == "collnet");
}

TEST_CASE("Trees gather in as many rounds as the ranks double, of one rank on each node") {
  const GroupShape thin{.ranks = 16, .nodes = 16, .groups_per_node = 8};
  const auto cluster = plain_cluster();
  // 15/16 of 3.6 GB at 50 GB/s, four rounds; the ring takes 15.
  CHECK(milliseconds_of(Collective::all_gather, "pat", cluster, thin) ==
        Approx(67.5 + 0.04).epsilon(1e-9));
  CHECK(milliseconds_of(Collective::all_gather, "ring", cluster, thin) ==
        Approx(67.5 + 0.15).epsilon(1e-9));
  const CollectivePricing named{.choice = {.algorithm = "pat"}};
  CHECK(candidates(Collective::all_gather, 1_MB, whole_nodes(4), cluster, named).empty());
}

TEST_CASE("Two levels take their times one after the other") {
  const auto cluster = plain_cluster();
  // Inside twice 7/8 of 3.6 GB at 360 GB/s: 17.5 ms; across twice 3/4 at 400 GB/s: 13.5 ms; six
  // hops.
  CHECK(milliseconds_of(Collective::all_reduce, "hierarchical", cluster, whole_nodes(4)) ==
        Approx(17.5 + 13.5 + 0.06).epsilon(1e-9));
  CHECK(milliseconds_of(Collective::reduce_scatter, "hierarchical", cluster, whole_nodes(4)) ==
        Approx((17.5 + 13.5 + 0.06) / 2).epsilon(1e-9));
  // All to all: 7/8 at 360 GB/s inside, 3/4 at 50 GB/s of each rank across, one hop.
  CHECK(milliseconds_of(Collective::all_to_all, "hierarchical_all_to_all", cluster,
                        whole_nodes(4)) == Approx(8.75 + 54 + 0.01).epsilon(1e-9));
}

TEST_CASE("A root's NIC takes what comes from other nodes, its links what comes from its own") {
  const auto cluster = plain_cluster();
  // 24/32 of 3.6 GB over one NIC of 50 GB/s: 54 ms. On one node 7/8 at 360 GB/s.
  for (const auto kind : {Collective::gather, Collective::scatter}) {
    CHECK(milliseconds_of(kind, "rooted", cluster, whole_nodes(4)) ==
          Approx(54 + 0.01).epsilon(1e-9));
    CHECK(milliseconds_of(kind, "rooted", cluster, whole_nodes(1)) == Approx(8.75).epsilon(1e-9));
  }
}

TEST_CASE("Fewer channels than NCCL opens have so much less rate, more of them no more") {
  auto cluster = plain_cluster();
  cluster.node.gpu.generation.compute_capability = 90;
  CollectivePricing pricing{.choice = {.algorithm = "ring"}};
  const auto open = price(Collective::all_gather, 3600_MB, whole_nodes(4), cluster, pricing);
  CHECK(open.channels == 16);
  pricing.choice.channels = 4;
  const auto few = price(Collective::all_gather, 3600_MB, whole_nodes(4), cluster, pricing);
  CHECK(ratio(few.fluid, open.fluid) == Approx(4));
  CHECK(few.latency == open.latency);
  pricing.choice.channels = 64;
  CHECK(price(Collective::all_gather, 3600_MB, whole_nodes(4), cluster, pricing).time == open.time);
}

}  // namespace orrery::models
