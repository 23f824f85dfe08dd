#include "sim/flows/network.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/refusal.hpp"

namespace orrery {
namespace {

LinkId link(std::size_t number) {
  return LinkId{static_cast<std::uint32_t>(number)};
}

TEST_CASE("Two equal flows on one link each get half of it") {
  // 1 GB + 1 GB over 100 GB/s: both leave when all 2 GB have crossed, at 20 ms.
  Engine engine;
  Network network{engine};
  const LinkId wire = network.add_link(100_GBps);

  Time first;
  Time second;
  network.send(1_GB, {wire}, [&] { first = engine.now(); });
  network.send(1_GB, {wire}, [&] { second = engine.now(); });
  engine.run();

  CHECK(first == 20_ms);
  CHECK(second == 20_ms);
}

TEST_CASE("A lone flow ends at the picosecond at which its last byte has crossed") {
  // 1 GB at 3 GB/s: 1/3 s, rounded up to 333,333,333,334 ps; 500 ns and 1 us of latency first.
  Engine engine;
  Network network{engine};
  const LinkId fast = network.add_link(50_GBps, 500_ns);
  const LinkId slow = network.add_link(3_GBps, 1_us);
  Time end;
  network.send(1_GB, {fast, slow}, [&] { end = engine.now(); });
  engine.run();
  CHECK(end == Time{333'333'333'334} + 1500_ns);
}

TEST_CASE("A flow that comes late shares only what is left to carry") {
  // Alone for 5 ms the first carries 0.5 of its 1 GB; then both have 50 GB/s. The first has 0.5 GB
  // left: 10 ms more, 15 ms. The second has then carried 0.5 GB, and alone needs 5 ms: 20 ms.
  Engine engine;
  Network network{engine};
  const LinkId wire = network.add_link(100_GBps);
  Time first;
  Time second;
  network.send(1_GB, {wire}, [&] { first = engine.now(); });
  engine.at(5_ms, [&] { network.send(1_GB, {wire}, [&] { second = engine.now(); }); });
  engine.run();
  CHECK(first == 15_ms);
  CHECK(second == 20_ms);
}

TEST_CASE("What a slow link denies to one flow, the others get") {
  // Three flows on 90 GB/s; one of them also crosses 10 GB/s. It has 10, the others 40 each.
  Engine engine;
  Network network{engine};
  const LinkId wide = network.add_link(90_GBps);
  const LinkId narrow = network.add_link(10_GBps);
  const FlowId held = network.send(1_GB, {wide, narrow}, {});
  const FlowId free = network.send(1_GB, {wide}, {});
  network.send(1_GB, {wide}, {});
  engine.run_until(1_us);
  CHECK(network.rate(held) == 10_GBps);
  CHECK(network.rate(free) == 40_GBps);
  CHECK(network.load(wide) == 90_GBps);
  CHECK(network.load(narrow) == 10_GBps);
}

TEST_CASE("A flow is on its links only after its latency") {
  // The second starts at 1 ms, when the first (1 GB at 1000 GB/s) has just gone: neither waits.
  Engine engine;
  Network network{engine};
  const LinkId wire = network.add_link(1000_GBps);
  const LinkId far = network.add_link(1000_GBps, 1_ms);
  std::vector<Time> ends;
  const auto note = [&] { ends.push_back(engine.now()); };
  network.send(1_GB, {wire}, note);
  const FlowId late = network.send(1_GB, {far, wire}, note);
  engine.run_until(500_us);
  CHECK(network.rate(late) == Bandwidth{});
  engine.run();
  CHECK(ends == std::vector<Time>{1_ms, 2_ms});
}

TEST_CASE("No bytes, and no links, take the latency alone") {
  Engine engine;
  Network network{engine};
  const LinkId wire = network.add_link(1_GBps, 3_us);
  std::vector<Time> ends;
  const auto note = [&] { ends.push_back(engine.now()); };
  network.send(0_B, {wire}, note);
  network.send(1_GB, {}, note);
  CHECK(ends.empty());  // never from inside `send`
  engine.run();
  CHECK(ends == std::vector<Time>{Time{}, 3_us});
  CHECK(network.ended() == 2);
}

TEST_CASE("A ring of n steps takes n times its latency and its chunk") {
  // Ring all-reduce, 16 ranks, 1 GiB: 30 steps of 64 MiB at 50 GB/s after 500 ns, every rank on its
  // own link. A chunk takes 67,108,864 / 50e9 s = 1,342,177,280 ps exactly.
  Engine engine;
  Network network{engine};
  constexpr int ranks = 16;
  for (int i = 0; i < ranks; ++i) network.add_link(50_GBps, 500_ns);
  struct Ring {
    Engine& engine;
    Network& network;
    std::vector<Time> ends;
    void step(std::size_t rank, int left) {
      if (left == 0) {
        ends.push_back(engine.now());
        return;
      }
      const LinkId out = link(rank);
      network.send(64_MiB, {out}, [this, rank, left] { step((rank + 1) % ranks, left - 1); });
    }
  } ring{engine, network, {}};
  for (std::size_t i = 0; i < ranks; ++i) ring.step(i, 30);
  engine.run();
  CHECK(ring.ends == std::vector<Time>(ranks, 30 * (500_ns + Time{1'342'177'280})));
}

TEST_CASE("An all-to-all through few spines is as slow as its fullest uplink") {
  // 4 leaves of 4 hosts, one spine link per leaf and direction: 4 x 12 flows of 1 MB leave a leaf
  // over 50 GB/s, so all of them end at 48 MB / 50 GB/s = 960 us, to the rounding of a share.
  Engine engine;
  Network network{engine};
  for (int i = 0; i < 16 * 2 + 4 * 2; ++i) network.add_link(50_GBps);
  Time last;
  for (std::size_t from = 0; from < 16; ++from) {
    for (std::size_t to = 0; to < 16; ++to) {
      if (from / 4 == to / 4) continue;
      network.send(1_MB, {link(from), link(32 + from / 4), link(36 + to / 4), link(16 + to)},
                   [&] { last = engine.now(); });
    }
  }
  engine.run();
  CHECK(last >= 960_us);
  CHECK(last <= 960_us + 1_ps);
  CHECK(network.carried(link(32)) == 48_MB);
  CHECK(network.sent() == 192);
  CHECK(network.ended() == 192);
}

/// A random program of flows: sizes, routes and times of sending.
struct Traffic {
  struct Sending {
    double at, size;  // seconds, bytes
    std::vector<std::size_t> route;
  };
  std::vector<double> capacities;
  std::vector<Sending> sendings;
};

/// Few links and short routes, so that components split and merge all the time.
Traffic random_traffic(std::uint64_t seed) {
  std::mt19937_64 random{seed};
  Traffic traffic;
  const std::size_t links = 3 + random() % 12;
  for (std::size_t i = 0; i < links; ++i) {
    traffic.capacities.push_back(static_cast<double>(1 + random() % 10) * 1e9);
  }
  const std::size_t flows = 5 + random() % 60;
  for (std::size_t i = 0; i < flows; ++i) {
    std::set<std::size_t> route;
    for (std::size_t hop = 1 + random() % 3; hop > 0; --hop) route.insert(random() % links);
    // A third start at once; sizes repeat now and then.
    const double at = random() % 3 == 0 ? 0.0 : static_cast<double>(random() % 1000) * 1e-6;
    const std::uint64_t sizes = random() % 2 == 0 ? 4 : 1000;
    const double size = static_cast<double>(1 + random() % sizes) * 1e3;
    traffic.sendings.push_back({at, size, {route.begin(), route.end()}});
  }
  return traffic;
}

/// Max-min rates of the open flows, one bottleneck at a time.
std::map<std::size_t, double> naive_rates(const Traffic& traffic, std::set<std::size_t> open) {
  std::vector<double> left = traffic.capacities;
  std::map<std::size_t, double> rates;
  while (!open.empty()) {
    std::vector<int> users(left.size(), 0);
    for (const std::size_t flow : open) {
      for (const std::size_t hop : traffic.sendings[flow].route) ++users[hop];
    }
    std::size_t full = left.size();
    for (std::size_t l = 0; l < left.size(); ++l) {
      if (users[l] > 0 && (full == left.size() || left[l] / users[l] < left[full] / users[full])) {
        full = l;
      }
    }
    const double share = left[full] / users[full];
    const std::set<std::size_t> candidates = open;
    for (const std::size_t flow : candidates) {
      const auto& route = traffic.sendings[flow].route;
      if (std::find(route.begin(), route.end(), full) == route.end()) continue;
      rates[flow] = share;
      open.erase(flow);
      for (const std::size_t hop : route) left[hop] -= share;
    }
  }
  return rates;
}

/// From one start or end to the next, everything anew: when each flow ends, in seconds.
std::vector<double> naive_ends(const Traffic& traffic) {
  std::vector<double> left;
  for (const auto& sending : traffic.sendings) left.push_back(sending.size);
  std::vector<double> ends(left.size(), -1);
  double now = 0;
  while (std::find(ends.begin(), ends.end(), -1.0) != ends.end()) {
    std::set<std::size_t> open;
    double step = HUGE_VAL;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (ends[i] >= 0) continue;
      const double at = traffic.sendings[i].at;
      if (at <= now + 1e-15) open.insert(i);
      if (at > now + 1e-15) step = std::min(step, at - now);
    }
    const auto rates = naive_rates(traffic, open);
    for (const auto& [flow, rate] : rates) step = std::min(step, left[flow] / rate);
    now += step;
    for (const auto& [flow, rate] : rates) {
      left[flow] -= rate * step;
      if (left[flow] <= 1e-6) ends[flow] = now;
    }
  }
  return ends;
}

Route route_of(const Traffic::Sending& sending) {
  Route route;
  for (const std::size_t hop : sending.route) route.push_back(link(hop));
  return route;
}

struct Sent {
  std::size_t sending;
  FlowId id;
};

/// Links are not over capacity, and each flow crosses a full link on which nobody is faster.
void certify(const Network& network, const Traffic& traffic, const std::vector<Sent>& flows) {
  for (std::size_t l = 0; l < traffic.capacities.size(); ++l) {
    REQUIRE(network.load(link(l)) <= network.bandwidth(link(l)));
  }
  for (const Sent& flow : flows) {
    const double rate = network.rate(flow.id).count();
    if (rate == 0) continue;  // ended
    bool held = false;
    for (const std::size_t hop : traffic.sendings[flow.sending].route) {
      // A share is rounded down by up to 2^-20 byte/s and tied within 2^-32: 1e-9 is ample.
      if (network.load(link(hop)).count() < traffic.capacities[hop] * (1 - 1e-9)) continue;
      held |= std::all_of(flows.begin(), flows.end(), [&](const Sent& other) {
        const auto& route = traffic.sendings[other.sending].route;
        return std::find(route.begin(), route.end(), hop) == route.end() ||
               network.rate(other.id).count() <= rate * (1 + 1e-9);
      });
    }
    REQUIRE(held);
  }
}

TEST_CASE("Any traffic ends as in a simulator that recomputes everything, and is max-min fair") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Traffic traffic = random_traffic(seed);
    Engine engine;
    Network network{engine};
    for (const double capacity : traffic.capacities) network.add_link(Bandwidth{capacity});
    std::vector<Time> ends(traffic.sendings.size());
    std::vector<Sent> flows;
    for (std::size_t i = 0; i < traffic.sendings.size(); ++i) {
      const auto& sending = traffic.sendings[i];
      engine.at(from_seconds(sending.at), [&, i] {
        const auto size = Bytes{static_cast<std::int64_t>(traffic.sendings[i].size)};
        const FlowId id = network.send(size, route_of(traffic.sendings[i]),
                                       [&ends, &engine, i] { ends[i] = engine.now(); });
        flows.push_back({i, id});
      });
    }
    for (Time probe{}; network.ended() < ends.size(); probe += 37_us) {
      engine.run_until(probe);
      certify(network, traffic, flows);
    }
    engine.run();

    REQUIRE(network.sent() == ends.size());
    REQUIRE(network.ended() == ends.size());
    const std::vector<double> expected = naive_ends(traffic);
    // Each rounding is at most 1 ps, and there are at most 2 x 65 starts and ends.
    for (std::size_t i = 0; i < ends.size(); ++i) {
      REQUIRE(seconds(ends[i]) == Approx(expected[i]).epsilon(1e-9).margin(200e-12));
    }
    // No link carried more than it can: all that crossed it took its load / capacity at least.
    const Time last = *std::max_element(ends.begin(), ends.end());
    for (std::size_t l = 0; l < traffic.capacities.size(); ++l) {
      REQUIRE(last >= network.carried(link(l)) / network.bandwidth(link(l)));
    }
  }
}

TEST_CASE("A flow's end may send the next one over the same links") {
  // A chain of 100 flows next to a crowd that ends and starts anew in the same instants: each
  // callback runs once, whatever numbers are used again.
  Engine engine;
  Network network{engine};
  for (int i = 0; i < 4; ++i) network.add_link(1_GBps);
  struct Chain {
    Network& network;
    std::vector<int> fired;
    void go(std::size_t which, int left) {
      ++fired[which];
      if (left == 0) return;
      network.send(1_MB, {link(which % 4), link((which + 1) % 4)},
                   [this, which, left] { go(which, left - 1); });
    }
  } chain{network, std::vector<int>(16, 0)};
  for (std::size_t i = 0; i < 16; ++i) chain.go(i, 100);
  engine.run();
  CHECK(chain.fired == std::vector<int>(16, 101));
  CHECK(network.sent() == 1600);
  CHECK(network.ended() == 1600);
  // Every link carries 8 of 16 flows of 1 MB per round: 100 rounds x 8 ms.
  CHECK(seconds(engine.now()) == Approx(0.8).epsilon(1e-9));
}

TEST_CASE("Routes of any length share the links that they have in common") {
  // One link, then 9 and 40 of which the last is that one too: three flows of 1 GB on 3 GB/s.
  Engine engine;
  Network network{engine};
  const LinkId last = network.add_link(3_GBps);
  std::vector<Time> ends;
  const auto note = [&] { ends.push_back(engine.now()); };
  network.send(1_GB, {last}, note);
  for (const std::size_t length : {9, 40}) {
    Route route;
    while (route.size() + 1 < length) route.push_back(network.add_link(10_GBps));
    route.push_back(last);
    network.send(1_GB, route, note);
  }
  engine.run();
  CHECK(ends == std::vector<Time>(3, 1_s));
  CHECK(network.carried(last) == 3_GB);
}

TEST_CASE("Links and flows that cannot be are refused") {
  Engine engine;
  Network network{engine};
  const LinkId wire = network.add_link(1_GBps);
  CHECK(refusal([&] { network.add_link(Bandwidth{0}); }) ==
        "a link carries from 1 byte/s to 17 TB/s");
  CHECK(refusal([&] { network.add_link(Bandwidth{2e13}); }) ==
        "a link carries from 1 byte/s to 17 TB/s");
  CHECK(refusal([&] { network.add_link(Bandwidth{NAN}); }) ==
        "a link carries from 1 byte/s to 17 TB/s");
  CHECK(refusal([&] { network.add_link(1_GBps, Time{-1}); }) ==
        "a link's latency is at least 0 ps");
  CHECK(refusal([&] { network.send(Bytes{-1}, {wire}, {}); }) == "a flow carries at least 0 bytes");
  CHECK(refusal([&] { network.send(1_B, {link(7)}, {}); }) ==
        "a route names a link that the network has not");
  CHECK(refusal([&] { network.send(1_B, {wire, wire}, {}); }) == "a route crosses a link twice");
  network.send(Bytes{std::int64_t{1} << 60}, {network.add_link(Bandwidth{1})}, {});
  CHECK(refusal([&] { engine.run(); }) ==
        "a flow would last longer than 106 days, the longest time that can be simulated");
}

}  // namespace
}  // namespace orrery
