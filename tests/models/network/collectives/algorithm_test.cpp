// The table of algorithms, and what a price says of its links.

#include "models/network/collectives/algorithm.hpp"

#include <catch2/catch.hpp>

#include "models/network/collectives/terms.hpp"
#include "tests/models/network/collectives/clusters.hpp"

namespace orrery::models {
namespace {

using namespace testing;

/// Of another house: every rank reads a byte in a nanosecond, whatever the network.
std::vector<CollectiveTime> telepathy(const collectives::CostCall& call) {
  return {collectives::finish(call, {.latency = 1e-9 * call.bytes()}, Protocol::simple)};
}

/// A price's two parts, on all candidates of all collectives.
template <class Check>
void for_all_candidates(const Check& check) {
  for (const auto& [kind, word] : collective_words) {
    for (const int nodes : {1, 2, 16}) {
      GroupShape group = whole_nodes(nodes);
      if (kind == Collective::send_receive) {
        group = {.ranks = 2, .nodes = std::min(nodes, 2), .ranks_per_node = nodes > 1 ? 1 : 2};
      }
      for (const Bytes size : {8_B, 1_MiB, 1_GiB}) {
        for (const CollectiveTime& one : candidates(kind, size, group, h100_cluster(nodes))) {
          CAPTURE(word, nodes, size.count(), one.algorithm);
          check(one, group);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("An algorithm from outside is one function and one row: it is priced and chosen") {
  Registry<CollectiveAlgorithm> table = builtin_algorithms();
  table.add("telepathy", {.times = telepathy,
                          .operations = {Collective::all_gather},
                          .pattern = TrafficPattern::all_pairs,
                          .paper = "none"});
  const auto cluster = h100_cluster(4);
  const CollectivePricing pricing{.algorithms = &table};
  // 1,000 B in 1 us; the ring takes 4.6 us before its first hop. From 1 GB it is the slower one.
  const auto small = price(Collective::all_gather, 1000_B, whole_nodes(4), cluster, pricing);
  CHECK(small.algorithm == "telepathy");
  CHECK(microseconds(small.time) == Approx(1));
  CHECK(small.pattern == TrafficPattern::all_pairs);
  CHECK(price(Collective::all_gather, 1_GB, whole_nodes(4), cluster, pricing).algorithm == "ring");
  CHECK(price(Collective::all_reduce, 8_B, whole_nodes(4), cluster, pricing).algorithm !=
        "telepathy");
  CHECK(price(Collective::all_gather, 1000_B, whole_nodes(4), cluster).algorithm == "ring");
}

TEST_CASE("Every collective has an algorithm, and every algorithm a source") {
  for (const auto& [kind, word] : collective_words) {
    int performers = 0;
    for (const auto& [name, algorithm] : builtin_algorithms()) {
      performers += algorithm.performs(kind) && algorithm.use == AlgorithmUse::usual ? 1 : 0;
    }
    CAPTURE(word);
    CHECK(performers > 0);
  }
  for (const auto& [name, algorithm] : builtin_algorithms()) CHECK(!algorithm.paper.empty());
}

TEST_CASE("A choice like NCCL_ALGO and NCCL_PROTO keeps what it names, or is refused") {
  const auto cluster = h100_cluster();
  CollectivePricing pricing;
  pricing.choice.algorithm = "ring";
  pricing.choice.protocol = Protocol::ll;
  // A gigabyte goes by NVLS unless another is named.
  CHECK(price(Collective::all_reduce, 1_GB, whole_nodes(1), cluster).algorithm == "nvls");
  const auto forced = price(Collective::all_reduce, 1_GB, whole_nodes(1), cluster, pricing);
  CHECK(forced.algorithm == "ring");
  CHECK(forced.protocol == Protocol::ll);
  pricing.choice.algorithm = "nvls_tree";
  CHECK_THROWS_WITH(price(Collective::all_reduce, 1_GB, whole_nodes(1), cluster, pricing),
                    "algorithm nvls_tree with protocol ll does not support all_reduce of 8 ranks "
                    "on 1 node of this cluster; usable: tree ring nvls");
  pricing.choice.algorithm = "rings";
  CHECK_THROWS_WITH(price(Collective::all_reduce, 1_GB, whole_nodes(1), cluster, pricing),
                    Catch::StartsWith("unknown collective algorithm 'rings'; known: nvls_tree"));
}

TEST_CASE("A price is a part without bytes and one at a constant rate") {
  for_all_candidates([](const CollectiveTime& one, const GroupShape& group) {
    CHECK(one.latency + one.fluid == one.time);
    CHECK(one.fluid >= std::max(one.links.nic, one.links.nvlink));
    CHECK((one.pattern == TrafficPattern::none) == (group.nodes == 1));
    CHECK((one.wire.count() > 0) == (group.nodes > 1));
    CHECK((one.flows > 0) == (group.nodes > 1));
  });
}

TEST_CASE("All flows of a group together occupy its NICs, and no more, where the network limits") {
  // 16 x 8 GPUs of Hopper with 8 NICs at 50 GB/s: eight channels found, twice, two on each NIC. A
  // ring of one rank per node has one NIC: found in two halves, twice, four flows of 12.5 GB/s.
  auto cluster = h100_cluster(16);
  cluster.node.gpu.generation.compute_capability = 90;
  const CollectivePricing alone{.sharing = LinkSharing::alone};
  const auto whole = price(Collective::all_gather, 1_GB, whole_nodes(16), cluster, alone);
  CHECK(whole.flows == 2);
  CHECK(whole.channels == 16);
  CHECK(whole.wire == 25_GBps);
  GroupShape thin{.ranks = 16, .nodes = 16, .ranks_per_node = 1, .groups_per_node = 8};
  const auto one = price(Collective::all_gather, 1_GB, thin, cluster, alone);
  CHECK(one.flows == 4);
  CHECK(one.wire.count() == Approx(12.5e9));
  // Eight siblings have a NIC each: the same alone. On one NIC a node they would share it.
  auto lean = cluster;
  lean.node.nics = 1;
  const auto shared = price(Collective::all_gather, 1_GB, thin, lean);
  const auto undisturbed = price(Collective::all_gather, 1_GB, thin, lean, alone);
  CHECK(ratio(shared.fluid, undisturbed.fluid) == Approx(8));
  CHECK(undisturbed.time == one.time);
}

TEST_CASE("A price alone knows no oversubscription either") {
  auto lean = h100_cluster(64);
  lean.fabric.oversubscription = 4;
  const GroupShape group{
      .ranks = 8, .nodes = 8, .ranks_per_node = 1, .groups_per_node = 8, .node_stride = 8};
  const CollectivePricing alone{.sharing = LinkSharing::alone};
  CHECK(price(Collective::all_gather, 1_GB, group, lean, alone).time ==
        price(Collective::all_gather, 1_GB, group, h100_cluster(64), alone).time);
  CHECK(price(Collective::all_gather, 1_GB, group, lean).time >
        price(Collective::all_gather, 1_GB, group, lean, alone).time);
}

TEST_CASE("On an ideal machine the closed forms hold") {
  // 1,024 nodes of one GPU, 50 GB/s and 2 us from one to another: a ring all-reduce of 2^30 B takes
  // 2 * 1023 * (2^20 / 50e9 + 2e-6) s, an all-to-all 2 us + 2^30 * 1023 / 1024 / 50e9.
  auto cluster = h100_cluster(1024);
  cluster.node.gpus = cluster.node.nics = 1;
  cluster.fabric.efficiency = cluster.fabric.gather_efficiency = 1;
  cluster.collectives.make_ideal();
  cluster.collectives.network = 2_us;
  const GroupShape group{.ranks = 1024, .nodes = 1024};
  const CollectivePricing ring{.choice = {.algorithm = "ring"}};
  CHECK(seconds(price(Collective::all_reduce, 1_GiB, group, cluster, ring).time) ==
        Approx(46.999729920e-3).epsilon(1e-9));
  CHECK(seconds(price(Collective::all_to_all, 1_GiB, group, cluster).time) ==
        Approx(21.455864960e-3).epsilon(1e-9));
  CHECK(seconds(price(Collective::send_receive, 1_GiB, {.ranks = 2, .nodes = 2}, cluster).time) ==
        Approx(2e-6 + 21.474836480e-3).epsilon(1e-9));
  // Inside a node: 8 GPUs, 450 GB/s, whatever the protocol.
  auto node = h100_cluster();
  node.collectives.make_ideal();
  node.collectives.ring_rate = 450_GBps;
  for (const auto& one : candidates(Collective::all_gather, 1_GB, whole_nodes(1), node)) {
    CHECK(seconds(one.time) == Approx(7.0 / 8 / 450).epsilon(1e-9));
  }
}

}  // namespace orrery::models
