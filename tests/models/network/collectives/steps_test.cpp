// Collectives on the links of a fabric, against closed forms and a naive simulator.

#include "models/network/collectives/steps.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "models/network/fabric/fabric_graph.hpp"
#include "tests/models/network/collectives/clusters.hpp"

namespace orrery::models {
namespace {

using namespace testing;

/// One GPU and one NIC of 50 GB/s a host, 16 hosts a leaf, one uplink of 50 GB/s to each spine,
/// 500 ns a cable, no software.
hardware::Cluster ideal_cluster(int hosts, int spines) {
  hardware::Cluster cluster;
  cluster.nodes = hosts;
  cluster.node.gpus = cluster.node.nics = 1;
  auto& fabric = cluster.fabric;
  fabric.kind = hardware::FabricKind::fat_tree;
  fabric.bandwidth = 50_GBps;
  fabric.nodes_per_leaf = 16;
  fabric.tree.spines = spines;
  fabric.oversubscription = 16.0 / spines;
  fabric.hop_latency = 500_ns;
  fabric.longest_path = hosts > 16 ? 4 : 2;
  fabric.efficiency = fabric.gather_efficiency = 1;
  cluster.collectives.make_ideal();
  cluster.collectives.network = *fabric.hop_latency * fabric.longest_path;
  return cluster;
}

GroupShape all_of(const hardware::Cluster& cluster) {
  return {.ranks = cluster.nodes, .nodes = cluster.nodes};
}

NetworkCall call_of(Collective kind, Bytes size, const hardware::Cluster& cluster,
                    std::string_view algorithm) {
  return {.collective = kind,
          .size = size,
          .group = all_of(cluster),
          .cluster = cluster,
          .algorithm = algorithm};
}

NetworkRun locked(const NetworkCall& call) {
  const CollectivePricing pricing{.sharing = LinkSharing::alone,
                                  .choice = {.algorithm = call.algorithm}};
  return run_as_flows(call, price(call.collective, call.size, call.group, call.cluster, pricing));
}

double milliseconds(const NetworkRun& run) {
  return seconds(run.time) * 1e3;
}

/// Max-min by the book: raise all rates together until a link is full, stop its flows, go on.
/// Time in seconds; every flow starts after its links' latencies.
double naive_end(const FabricGraph& fabric, int ranks, const std::vector<Bytes>& counts) {
  struct NaiveFlow {
    Route route;
    double begin = 0, left = 0, rate = 0;
  };
  std::vector<NaiveFlow> flows;
  for (int i = 0; i < ranks * ranks; ++i) {
    const auto from = static_cast<std::size_t>(i / ranks), to = static_cast<std::size_t>(i % ranks);
    if (from == to) continue;
    NaiveFlow flow;
    fabric.route({.from = from, .to = to}, flow.route);
    for (const LinkId link : flow.route) flow.begin += seconds(fabric.latency(link));
    flow.left = static_cast<double>(counts[static_cast<std::size_t>(i)].count());
    flows.push_back(flow);
  }
  double now = 0;
  while (true) {
    double next = 1e9;
    std::vector<double> left(fabric.links());
    for (std::size_t l = 0; l < left.size(); ++l) {
      left[l] = fabric.capacity(LinkId{static_cast<std::uint32_t>(l)}).count();
    }
    std::vector<NaiveFlow*> open;
    for (NaiveFlow& flow : flows) {
      flow.rate = 0;
      if (flow.left <= 0) continue;
      if (flow.begin > now * (1 + 1e-15)) {
        next = std::min(next, flow.begin);
      } else {
        open.push_back(&flow);
      }
    }
    while (!open.empty()) {
      std::vector<int> count(left.size());
      for (const NaiveFlow* flow : open) {
        for (const LinkId link : flow->route) ++count[index(link)];
      }
      double level = 1e30;
      for (std::size_t l = 0; l < left.size(); ++l) {
        if (count[l] > 0) level = std::min(level, left[l] / count[l]);
      }
      std::vector<NaiveFlow*> rest;
      std::vector<NaiveFlow*> stopped;
      for (NaiveFlow* flow : open) {
        const bool full = std::any_of(flow->route.begin(), flow->route.end(), [&](LinkId link) {
          return left[index(link)] / count[index(link)] <= level * (1 + 1e-9);
        });
        (full ? stopped : rest).push_back(flow);
      }
      for (NaiveFlow* flow : stopped) {
        flow->rate = level;
        for (const LinkId link : flow->route) left[index(link)] -= level;
      }
      open = rest;
    }
    bool any = false;
    for (const NaiveFlow& flow : flows) {
      if (flow.rate > 0) next = std::min(next, now + flow.left / flow.rate);
      any = any || flow.left > 0;
    }
    if (!any) return now;
    for (NaiveFlow& flow : flows) {
      if (flow.rate <= 0) continue;
      flow.left = now + flow.left / flow.rate <= next * (1 + 1e-14)
                      ? 0
                      : flow.left - flow.rate * (next - now);
    }
    now = next;
  }
}

}  // namespace

TEST_CASE("A ring in steps takes what its slowest edge does, every step of every rank a flow") {
  // 2 (N-1) (S / (N B) + 2 us), 2 (N-1) N messages. N = 128: 254 * (167.77216 + 2) us.
  const auto cluster = ideal_cluster(128, 16);
  const auto run = run_steps(call_of(Collective::all_reduce, 1_GiB, cluster, "ring"));
  CHECK(milliseconds(run) == Approx(43.122128640).epsilon(1e-9));
  CHECK(run.transfers == 254 * 128);
  CHECK(run.time == locked(call_of(Collective::all_reduce, 1_GiB, cluster, "ring")).time);
  // Half of the steps for a gather or scatter of shards.
  const auto half = run_steps(call_of(Collective::all_gather, 1_GiB, cluster, "ring"));
  CHECK(half.time * 2 == run.time);
  CHECK(run_steps(call_of(Collective::reduce_scatter, 1_GiB, cluster, "ring")).time == half.time);
}

TEST_CASE("A ring of 1,024 in steps is 2,095,104 flows", "[slow]") {
  const auto cluster = ideal_cluster(1024, 16);
  const auto run = run_steps(call_of(Collective::all_reduce, 1_GiB, cluster, "ring"));
  CHECK(milliseconds(run) == Approx(46.999729920).epsilon(1e-9));
  CHECK(run.transfers == 2'095'104);
  CHECK(run.memory < 10_MiB);
}

TEST_CASE("A ring as one locked part has the closed form's time at any scale") {
  for (const auto& [hosts, expected] : {std::pair{1024, 46.999729920}, {2048, 51.116701440}}) {
    const auto cluster = ideal_cluster(hosts, 16);
    const auto run = locked(call_of(Collective::all_reduce, 1_GiB, cluster, "ring"));
    CHECK(milliseconds(run) == Approx(expected).epsilon(1e-9));
    CHECK(run.transfers == 1);
    CHECK(run.events == 2);
  }
}

TEST_CASE("An all-to-all of pairs, and as two locked parts, fills the NICs or the uplinks") {
  // 16 spines: 1 us until flows under one leaf begin, then 255/256 of 2^30 B at 50 GB/s. 4 spines:
  // 112/128 of each leaf's bytes cross 4 uplinks of 50 GB/s, 2 us after the start.
  const auto wide = ideal_cluster(256, 16), narrow = ideal_cluster(128, 4);
  const auto pairs = [](const hardware::Cluster& cluster) {
    return call_of(Collective::all_to_all, 1_GiB, cluster, "pairwise");
  };
  const auto run = run_steps(pairs(wide));
  CHECK(run.transfers == 256 * 255);
  CHECK(run.memory < 20_MiB);
  CHECK(milliseconds(run) == Approx(21.391950400).epsilon(1e-9));
  CHECK(milliseconds(locked(pairs(wide))) == Approx(21.391950400).epsilon(1e-9));
  CHECK(milliseconds(run_steps(pairs(narrow))) == Approx(75.163927680).epsilon(1e-9));
  CHECK(milliseconds(locked(pairs(narrow))) == Approx(75.163927680).epsilon(1e-9));
  // Spines that do not divide the hosts of a leaf: some uplinks carry more than others.
  for (const int spines : {3, 5, 7, 11}) {
    const auto uneven = ideal_cluster(96, spines);
    const auto whole = call_of(Collective::all_to_all, 960_MB, uneven, "pairwise");
    CAPTURE(spines);
    CHECK(milliseconds(run_steps(whole)) == Approx(milliseconds(locked(whole))).epsilon(1e-9));
  }
}

TEST_CASE("An all-to-all of distinct sizes equals a naive simulator") {
  for (const int spines : {16, 3}) {
    const int hosts = 24;
    const auto cluster = ideal_cluster(hosts, spines);
    std::mt19937_64 random{7};
    std::vector<Bytes> counts;
    for (int i = 0; i < hosts * hosts; ++i) {
      counts.push_back(Bytes{
          i / hosts == i % hosts ? 0 : static_cast<std::int64_t>(500'000 + random() % 1'000'000)});
    }
    NetworkCall call = call_of(Collective::all_to_all_v, 1_GiB, cluster, "pairwise");
    call.counts = counts;
    const auto run = run_steps(call);
    CHECK(run.transfers == static_cast<std::uint64_t>(hosts * (hosts - 1)));
    // Each of 552 ends is a picosecond late at most.
    CHECK(std::abs(seconds(run.time) - naive_end(FabricGraph{cluster}, hosts, counts)) < 552e-12);
    // No link ends before it has carried its bytes.
    for (int rank = 0; rank < hosts; ++rank) {
      Bytes sent{};
      for (int to = 0; to < hosts; ++to)
        sent += counts[static_cast<std::size_t>(rank * hosts + to)];
      CHECK(run.time >= sent / (50_GBps));
    }
  }
}

TEST_CASE("A root takes in turns what all send, and one message its latency and its bytes") {
  const auto cluster = ideal_cluster(64, 16);
  // 63/64 of 2^30 B into one NIC, 1 us after the start.
  const auto into = run_steps(call_of(Collective::gather, 1_GiB, cluster, "rooted"));
  CHECK(milliseconds(into) == Approx(21.139292160 + 0.001).epsilon(1e-9));
  CHECK(run_steps(call_of(Collective::scatter, 1_GiB, cluster, "rooted")).transfers == 63);
  NetworkCall message = call_of(Collective::send_receive, 1_GiB, cluster, "direct");
  message.group = {.ranks = 2, .nodes = 2};
  CHECK(milliseconds(run_steps(message)) == Approx(21.474836480 + 0.001).epsilon(1e-9));
}

TEST_CASE("A broadcast goes down the chain in slices") {
  // 64 MiB in 128 slices of 512 KiB over 31 edges of 1 us, one of them 2 us: a slice moves on every
  // 2 us + 10.48576 us behind the slow edge, which is the 16th.
  const auto cluster = ideal_cluster(32, 16);
  const auto run = run_steps(call_of(Collective::broadcast, 64_MiB, cluster, "ring"));
  CHECK(run.transfers == 128 * 31);
  CHECK(seconds(run.time) * 1e6 == Approx(128 * 12.48576 + 30 * 11.48576).epsilon(1e-9));
}

TEST_CASE("Rings of whole nodes use every NIC, and agree with the cost model") {
  // 4 x 8 H100, only bytes: 31/32 of 8 GB at 8 x 50 GB/s; within 1 %, as shards of a ring have
  // edges inside nodes too.
  auto cluster = ideal_cluster(4, 16);
  cluster.node.gpus = cluster.node.nics = 8;
  cluster.node.scale_up = hardware::ScaleUp::nvswitch;
  cluster.node.scale_up_bandwidth = cluster.collectives.ring_rate = 450_GBps;
  const GroupShape group = whole_nodes(4);
  NetworkCall call = call_of(Collective::all_gather, 8_GB, cluster, "ring");
  call.group = group;
  const auto priced = price(Collective::all_gather, 8_GB, group, cluster);
  CHECK(ratio(run_steps(call).time, priced.time) == Approx(1).epsilon(0.01));
  CHECK(run_steps(call).transfers == 8 * 32 * 31);
  CHECK(ratio(locked(call).time, priced.time) == Approx(1).epsilon(1e-6));
}

TEST_CASE("What steps do not know is refused with what they know") {
  const auto cluster = ideal_cluster(4, 4);
  CHECK_THROWS_WITH(run_steps(call_of(Collective::all_reduce, 1_MB, cluster, "tree")),
                    Catch::StartsWith("unknown algorithm of --network steps 'tree'; known: ring"));
  for (const std::string& name : algorithms_in_steps()) CHECK(builtin_algorithms().has(name));
}

}  // namespace orrery::models
