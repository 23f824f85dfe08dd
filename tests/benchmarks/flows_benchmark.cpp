// What a flow costs, start and end with their events, on the fat tree that rings and all-to-alls
// use: two levels, 16 hosts per leaf, 50 GB/s and 500 ns per cable. Routes are made beforehand.
// Targets on one core: ring of 1,024, every step a flow, 400 ms; all-to-all of 256 hosts 25 ms, of
// 128 on 4 spines 5 ms; incast of 1,023 0.5 ms; 4,032 flows of distinct sizes 200 ms,
// 16,256 of them 2 s.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <vector>

#include "sim/engine.hpp"
#include "sim/flows/network.hpp"
#include "sim/topology/fat_tree.hpp"

namespace orrery {
namespace {

Interconnect cluster(int hosts, double oversubscription) {
  return fat_tree(two_level({.devices = hosts,
                             .devices_per_leaf = 16,
                             .oversubscription = oversubscription,
                             .bandwidth = 50_GBps,
                             .latency = 500_ns}));
}

void report(benchmark::State& state, std::uint64_t flows) {
  state.counters["per_flow"] = benchmark::Counter(
      static_cast<double>(flows), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["flows"] =
      benchmark::Counter(static_cast<double>(flows), benchmark::Counter::kAvgIterations);
}

struct Sending {
  Bytes size;
  Route route;
};

/// All at once; what is timed is a whole run, network included.
void run_all(benchmark::State& state, const Topology& topology,
             const std::vector<Sending>& sendings) {
  std::uint64_t flows = 0;
  for (auto _ : state) {
    Engine engine;
    Network network{engine};
    topology.install(network);
    for (const Sending& sending : sendings) network.send(sending.size, sending.route, {});
    engine.run();
    flows += network.ended();
  }
  report(state, flows);
}

/// One flow after another on a link of its own.
void lone_flows(benchmark::State& state) {
  Engine engine;
  Network network{engine};
  const Route wire{network.add_link(50_GBps, 500_ns)};
  for (auto _ : state) {
    network.send(1_MB, wire, {});
    engine.run();
  }
  report(state, network.ended());
}

/// Every step of a ring all-reduce of 1 GiB: 2(n-1) flows per rank.
void ring(benchmark::State& state) {
  struct Ring {
    Network& network;
    std::vector<Route> routes;
    Bytes chunk;
    void step(std::size_t rank, int left) {
      if (left == 0) return;
      network.send(chunk, routes[rank], [this, rank, left] {
        step(rank + 1 == routes.size() ? 0 : rank + 1, left - 1);
      });
    }
  };
  const auto ranks = static_cast<std::size_t>(state.range(0));
  const Interconnect built = cluster(static_cast<int>(ranks), 1);
  std::vector<Route> routes;
  for (std::size_t i = 0; i < ranks; ++i) routes.push_back(built.route(i, (i + 1) % ranks));
  std::uint64_t flows = 0;
  for (auto _ : state) {
    Engine engine;
    Network network{engine};
    built.topology.install(network);
    Ring all{network, routes, Bytes{(1_GiB).count() / state.range(0)}};
    for (std::size_t i = 0; i < ranks; ++i) all.step(i, 2 * static_cast<int>(ranks) - 2);
    engine.run();
    flows += network.ended();
  }
  report(state, flows);
}

/// hosts, spines
void all_to_all(benchmark::State& state) {
  const auto hosts = static_cast<std::size_t>(state.range(0));
  const Interconnect built =
      cluster(static_cast<int>(hosts), 16.0 / static_cast<double>(state.range(1)));
  std::vector<Sending> sendings;
  for (std::size_t from = 0; from < hosts; ++from) {
    for (std::size_t to = 0; to < hosts; ++to) {
      if (from != to) sendings.push_back({1_MB, built.route(from, to)});
    }
  }
  run_all(state, built.topology, sendings);
}

/// The hard case: one component, and every end changes all the rates.
void all_to_all_of_distinct_sizes(benchmark::State& state) {
  const auto hosts = static_cast<std::size_t>(state.range(0));
  const Interconnect built = cluster(static_cast<int>(hosts), 1);
  std::mt19937_64 random{1};
  std::vector<Sending> sendings;
  for (std::size_t from = 0; from < hosts; ++from) {
    for (std::size_t to = 0; to < hosts; ++to) {
      if (from == to) continue;
      const auto size = Bytes{static_cast<std::int64_t>(500'000 + random() % 1'000'000)};
      sendings.push_back({size, built.route(from, to)});
    }
  }
  run_all(state, built.topology, sendings);
}

void incast(benchmark::State& state) {
  const Interconnect built = cluster(1024, 1);
  std::vector<Sending> sendings;
  for (std::size_t from = 1; from < 1024; ++from) {
    sendings.push_back({1_MiB, built.route(from, 0)});
  }
  run_all(state, built.topology, sendings);
}

BENCHMARK(lone_flows);
BENCHMARK(ring)->Arg(128)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(all_to_all)
    ->Args({256, 16})
    ->Args({128, 4})
    ->Args({256, 5})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(all_to_all_of_distinct_sizes)->Arg(64)->Arg(128)->Unit(benchmark::kMillisecond);
BENCHMARK(incast)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery
