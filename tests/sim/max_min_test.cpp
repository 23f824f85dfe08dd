#include "sim/flows/max_min.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/sim/refusal.hpp"

namespace orrery {
namespace {

using Rate = MaxMinFilling::Rate;
constexpr Rate uncapped = 1'000'000'000;

struct Crossed {
  std::uint32_t link, flows;
};
struct TestClass {
  Rate cap = uncapped;
  std::vector<Crossed> crossed;
  Rate rate = 0;
};

/// Flow classes on links, as the filling asks for them.
struct TestFlows {
  std::vector<Rate> capacities;
  std::vector<TestClass> classes;

  bool open(std::uint32_t id) const { return classes[id].rate == 0; }
  void stop(std::uint32_t id, Rate rate, std::uint32_t = 0) { classes[id].rate = rate; }
  template <class Visit>
  void each_on(std::uint32_t link, Visit visit) const {
    for (std::uint32_t id = 0; id < classes.size(); ++id) {
      for (const Crossed& each : classes[id].crossed) {
        if (each.link == link) visit(id);
      }
    }
  }
  template <class Visit>
  void each_crossing(std::uint32_t id, Visit visit) const {
    for (const Crossed& each : classes[id].crossed) visit(each.link, each.flows);
  }
  std::uint64_t flows_on(std::uint32_t link) const {
    std::uint64_t flows = 0;
    for (const TestClass& one : classes) {
      for (const Crossed& each : one.crossed) flows += each.link == link ? each.flows : 0;
    }
    return flows;
  }
};

std::vector<Rate> filled(TestFlows flows, ShareTies ties = ShareTies::exact) {
  MaxMinFilling filling{ties};
  filling.begin(flows.capacities.size());
  for (std::uint32_t link = 0; link < flows.capacities.size(); ++link) {
    if (flows.flows_on(link) > 0) {
      filling.add_link(link, flows.capacities[link], flows.flows_on(link));
    }
  }
  for (std::uint32_t id = 0; id < flows.classes.size(); ++id) {
    if (flows.classes[id].cap < uncapped) filling.add_cap(id, flows.classes[id].cap);
  }
  while (filling.rise(flows) > 0) {
  }
  std::vector<Rate> rates;
  for (const TestClass& each : flows.classes) rates.push_back(each.rate);
  return rates;
}

/// All shares anew after each level.
std::vector<Rate> naively_filled(const TestFlows& flows) {
  std::vector<Rate> rates(flows.classes.size(), 0), left = flows.capacities;
  for (;;) {
    std::vector<std::uint64_t> open(left.size(), 0);
    for (std::size_t id = 0; id < rates.size(); ++id) {
      for (const Crossed& each : flows.classes[id].crossed) {
        if (rates[id] == 0) open[each.link] += each.flows;
      }
    }
    const auto room = [&](std::size_t id) {
      Rate least = flows.classes[id].cap;
      for (const Crossed& each : flows.classes[id].crossed) {
        least = std::min<Rate>(least, left[each.link] / open[each.link]);
      }
      return least;
    };
    Rate level = uncapped;
    std::vector<std::size_t> stops;
    for (std::size_t id = 0; id < rates.size(); ++id) {
      if (rates[id] > 0 || room(id) > level) continue;
      if (room(id) < level) stops.clear();
      level = room(id);
      stops.push_back(id);
    }
    if (stops.empty()) return rates;
    for (const std::size_t id : stops) {
      rates[id] = level;
      for (const Crossed& each : flows.classes[id].crossed) left[each.link] -= each.flows * level;
    }
  }
}

TestFlows random_flows(std::uint64_t seed) {
  std::mt19937_64 random{seed};
  const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
  TestFlows flows;
  for (std::uint32_t links = 1 + below(8), i = 0; i < links; ++i) {
    flows.capacities.push_back(1'000 + below(4) * 1'000 + below(3));
  }
  for (std::uint32_t classes = 1 + below(8), i = 0; i < classes; ++i) {
    TestClass& one = flows.classes.emplace_back();
    if (below(2) == 0) one.cap = 50 + below(600);
    for (std::uint32_t link = 0; link < flows.capacities.size(); ++link) {
      if (below(3) == 0) one.crossed.push_back({link, 1 + below(5)});
    }
    if (one.crossed.empty()) one.crossed.push_back({below(flows.capacities.size()), 1});
  }
  return flows;
}

TEST_CASE("What a flow class cannot use of a link, the others get") {
  // 90 for two flows of at most 10 and one flow without a cap: 10 each, and 90 - 2 x 10 = 70.
  CHECK(filled({{90}, {{10, {{0, 2}}}, {uncapped, {{0, 1}}}}}) == std::vector<Rate>{10, 70});
  // 90 for three flows, of which one class has two: 30 each; at its cap of 30, too.
  CHECK(filled({{90}, {{30, {{0, 2}}}, {uncapped, {{0, 1}}}}}) == std::vector<Rate>{30, 30});
}

TEST_CASE("The flows of one class stop together, at the fullest of their links") {
  // Of a ring's flows 3 cross link 0 (60) and 1 crosses link 1 (100): 20 each, on both links. The
  // other class has what is left of link 1: 100 - 20 = 80.
  const TestFlows flows{{60, 100}, {{uncapped, {{0, 3}, {1, 1}}}, {uncapped, {{1, 1}}}}};
  CHECK(filled(flows) == std::vector<Rate>{20, 80});
}

TEST_CASE("Links of equal shares but for remainders are full at one level where ties are rounded") {
  // 2^40 + 1 and 2^40 for two flows each: shares of 2^39 both. 2^40 + 2: a share larger by 1, or by
  // less than 2^-32 of it.
  const Rate wide = Rate{1} << 40;
  const TestFlows flows{{wide + 2, wide}, {{uncapped, {{0, 2}}}, {uncapped, {{1, 2}}}}};
  const TestFlows large{{wide + 2, wide}, {{Rate{1} << 60, {{0, 2}}}, {Rate{1} << 60, {{1, 2}}}}};
  CHECK(filled(flows) == std::vector<Rate>{wide / 2 + 1, wide / 2});
  CHECK(filled(large, ShareTies::rounded) == std::vector<Rate>{wide / 2, wide / 2});
}

TEST_CASE("Rates of random flow classes are those of filling anew from nothing") {
  int capped = 0, limited = 0;
  for (std::uint64_t seed = 0; seed < 3'000; ++seed) {
    const TestFlows flows = random_flows(seed);
    INFO("seed " << seed);
    const std::vector<Rate> rates = filled(flows);
    REQUIRE(rates == naively_filled(flows));
    for (std::size_t id = 0; id < rates.size(); ++id) {
      ++(rates[id] == flows.classes[id].cap ? capped : limited);
    }
  }
  CHECK(capped > 1'000);
  CHECK(limited > 1'000);
}

TEST_CASE("A multiplicity counts as that many flows") {
  for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
    std::mt19937_64 random{seed};
    TestFlows counted{{1'000 + random() % 5'000}, {}}, listed = counted;
    std::vector<std::size_t> first;
    for (std::uint64_t classes = 1 + random() % 5; classes > 0; --classes) {
      const Rate cap = 50 + random() % 1'000;
      const auto flows = static_cast<std::uint32_t>(1 + random() % 6);
      counted.classes.push_back({cap, {{0, flows}}});
      first.push_back(listed.classes.size());
      for (std::uint32_t i = 0; i < flows; ++i) listed.classes.push_back({cap, {{0, 1}}});
    }
    const std::vector<Rate> rates = filled(counted), of_each = filled(listed);
    for (std::size_t id = 0; id < rates.size(); ++id) REQUIRE(rates[id] == of_each[first[id]]);
  }
}

TEST_CASE("A link with more flows than rate to share is refused") {
  CHECK(refusal([] {
          filled({{3}, {{uncapped, {{0, 4}}}}});
        }) == "a link has more flows than it has rate to share");
}

}  // namespace
}  // namespace orrery
