// The same flows on the same links here and in SimGrid: both end together. SimGrid solves whole
// systems ("Full"; its lazy updates end some all-to-alls below what their links can carry), with
// CM02, whose shares do not depend on the round trip where flows have one latency; windows, reverse
// traffic and factors of protocols are off.
// Source  Casanova et al. 2014, "Versatile, scalable, and accurate simulation of distributed
//         applications and platforms"; Debian's libsimgrid-dev

#include <xbt/log.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "sim/engine.hpp"
#include "sim/flows/network.hpp"
#include "sim/topology/fat_tree.hpp"

namespace orrery {
namespace {

struct SharedLink {
  Bandwidth bandwidth{};
  Time latency{};
};

/// A message from one host to another over links, from `at` on.
struct Shipment {
  std::size_t from = 0, to = 0;
  Time at{};
  Bytes size{};
  Route route;
};

/// Flows that share nothing with those of other worlds; no two between the same hosts.
struct World {
  std::size_t hosts = 0;
  std::vector<SharedLink> links;
  std::vector<Shipment> shipments;
};

std::vector<Time> our_ends(const World& world) {
  Engine engine;
  Network network{engine};
  for (const SharedLink& each : world.links) network.add_link(each.bandwidth, each.latency);
  std::vector<Time> ends(world.shipments.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    engine.at(world.shipments[i].at, [&, i] {
      network.send(world.shipments[i].size, world.shipments[i].route,
                   [&, i] { ends[i] = engine.now(); });
    });
  }
  engine.run();
  return ends;
}

namespace sg = simgrid::s4u;

/// All worlds in one platform, as a process has one of them.
class SimGridWorlds {
 public:
  SimGridWorlds() : engine_{engine()}, root_{sg::create_full_zone("root")} {}

  void add(const World& world) {
    const std::string name = "w" + std::to_string(worlds_++);
    sg::NetZone* const zone = sg::create_full_zone(name)->set_parent(root_);
    std::vector<sg::Host*> hosts;
    for (std::size_t h = 0; h < world.hosts; ++h) {
      hosts.push_back(zone->create_host(name + "h" + std::to_string(h), 1e9));
    }
    std::vector<sg::Link*> links;
    for (const SharedLink& each : world.links) {
      links.push_back(
          zone->create_link(name + "l" + std::to_string(links.size()), each.bandwidth.count()));
      links.back()->set_latency(seconds(each.latency));
    }
    std::vector<double>& ends = ends_.emplace_back(world.shipments.size());
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const Shipment& each = world.shipments[i];
      std::vector<sg::LinkInRoute> route;
      for (const LinkId link : each.route) route.emplace_back(links[index(link)]);
      sg::Host *const from = hosts[each.from], *const to = hosts[each.to];
      zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
      plans_.push_back(
          {from, to, seconds(each.at), static_cast<double>(each.size.count()), worlds_ - 1, i});
    }
    zone->seal();
  }

  /// By world and shipment: when it has ended.
  const std::vector<std::vector<double>>& run() {
    root_->seal();
    for (const Plan& plan : plans_) {
      sg::Actor::create("sender", plan.from, [this, &plan] {
        sg::this_actor::sleep_until(plan.at);
        sg::Comm::sendto(plan.from, plan.to, static_cast<std::uint64_t>(plan.bytes));
        ends_[plan.world][plan.shipment] = sg::Engine::get_clock();
      });
    }
    engine_.run();
    return ends_;
  }

 private:
  struct Plan {
    sg::Host *from, *to;
    double at, bytes;
    std::size_t world, shipment;
  };

  /// Settings come before the first zone.
  static sg::Engine& engine() {
    static int count = 1;
    static char name[] = "simgrid_test";
    static char* arguments[] = {name, nullptr};
    xbt_log_control_set("xbt_cfg.thresh:warning");
    static sg::Engine made{&count, arguments};
    for (const char* const setting :
         {"network/model:CM02", "network/optim:Full", "network/crosstraffic:no",
          "network/TCP-gamma:0", "network/weight-S:0", "network/bandwidth-factor:1",
          "network/latency-factor:1", "maxmin/precision:1e-9", "surf/precision:1e-12"}) {
      sg::Engine::set_config(setting);
    }
    return made;
  }

  sg::Engine& engine_;
  sg::NetZone* root_;
  std::size_t worlds_ = 0;
  std::vector<Plan> plans_;
  std::vector<std::vector<double>> ends_;
};

/// Up to 30 flows over up to 12 links, each world in ten seconds of its own. Without latencies, in
/// inverse proportion to which CM02 shares.
World random_world_of(std::uint64_t seed) {
  std::mt19937_64 random{seed};
  const auto below = [&](std::uint64_t n) { return static_cast<std::size_t>(random() % n); };
  World world;
  const std::size_t links = 3 + below(10), flows = 2 + below(29);
  for (std::size_t l = 0; l < links; ++l) {
    world.links.push_back({Bandwidth{1e9 * static_cast<double>(1 + below(50))}, Time{}});
  }
  const Time begin = from_seconds(10.0 * static_cast<double>(seed));
  for (std::size_t f = 0; f < flows; ++f) {
    Shipment& each = world.shipments.emplace_back();
    each.from = world.hosts++;
    each.to = world.hosts++;
    each.at = begin + 1_ms * static_cast<std::int64_t>(below(100));
    each.size = Bytes{static_cast<std::int64_t>(1'000'000 + below(500'000'000))};
    for (std::size_t l = 0; l < links; ++l) {
      if (below(3) == 0) each.route.push_back(LinkId{static_cast<std::uint32_t>(l)});
    }
    if (each.route.empty()) each.route.push_back(LinkId{static_cast<std::uint32_t>(below(links))});
  }
  return world;
}

/// Leaves of 16 hosts, 50 GB/s and 500 ns a cable: the fabrics on which closed forms hold.
World all_to_all_world(int hosts, int spines, Time at) {
  const Interconnect built = fat_tree(two_level({.devices = hosts,
                                                 .devices_per_leaf = 16,
                                                 .spines = spines,
                                                 .bandwidth = 50_GBps,
                                                 .latency = 500_ns}));
  World world;
  world.hosts = static_cast<std::size_t>(hosts);
  for (const auto& each : built.topology.links()) {
    world.links.push_back({each.bandwidth, each.latency});
  }
  const Bytes part{(1_GiB).count() / hosts};
  for (std::size_t from = 0; from < world.hosts; ++from) {
    for (std::size_t to = 0; to < world.hosts; ++to) {
      if (from != to) world.shipments.push_back({from, to, at, part, built.route(from, to)});
    }
  }
  return world;
}

TEST_CASE("Flows of random networks and all-to-alls end as in SimGrid") {
  SimGridWorlds theirs;
  std::vector<World> worlds;
  for (std::uint64_t seed = 0; seed < 100; ++seed) worlds.push_back(random_world_of(seed));
  // Paths within a leaf have half the latency of those across, and so other shares there:
  // makespans.
  worlds.push_back(all_to_all_world(64, 4, from_seconds(2000)));
  worlds.push_back(all_to_all_world(96, 5, from_seconds(2010)));
  for (const World& each : worlds) theirs.add(each);
  const std::vector<std::vector<double>>& found = theirs.run();
  std::size_t shared = 0;
  for (std::size_t w = 0; w < worlds.size(); ++w) {
    INFO("world " << w);
    const std::vector<Time> ends = our_ends(worlds[w]);
    const double begin = seconds(worlds[w].shipments[0].at);
    if (w >= 100) {
      const double ours = seconds(*std::max_element(ends.begin(), ends.end())) - begin;
      CHECK(ours ==
            Approx(*std::max_element(found[w].begin(), found[w].end()) - begin).epsilon(1e-8));
      continue;
    }
    for (std::size_t i = 0; i < ends.size(); ++i) {
      REQUIRE(seconds(ends[i]) == Approx(found[w][i]).epsilon(0).margin(2e-9));
      const Shipment& each = worlds[w].shipments[i];
      Bandwidth least = worlds[w].links[index(each.route[0])].bandwidth;
      for (const LinkId link : each.route) {
        least = std::min(least, worlds[w].links[index(link)].bandwidth);
      }
      shared += ends[i] > each.at + each.size / least ? 1 : 0;
    }
  }
  CHECK(shared > 500);  // or nothing was compared
}

}  // namespace
}  // namespace orrery
