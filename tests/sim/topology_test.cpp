#include "sim/topology/topology.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/visitors.hpp>
#include <set>
#include <vector>

#include "sim/topology/dragonfly.hpp"
#include "sim/topology/fat_tree.hpp"
#include "sim/topology/torus.hpp"
#include "tests/sim/refusal.hpp"

namespace orrery {
namespace {

/// Every route begins and ends where it should and crosses no link twice; the longest one.
std::size_t longest_valid_route(const Interconnect& built) {
  std::size_t longest = 0;
  for (std::size_t from = 0; from < built.devices.size(); ++from) {
    for (std::size_t to = 0; to < built.devices.size(); ++to) {
      const Route route = built.route(from, to);
      REQUIRE(built.topology.joins(route, built.devices[from], built.devices[to]));
      REQUIRE(std::set<LinkId>(route.begin(), route.end()).size() == route.size());
      longest = std::max(longest, route.size());
    }
  }
  return longest;
}

/// Is every route as short as any in the graph?
bool all_shortest(const Interconnect& built) {
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS> graph(
      built.topology.vertices());
  for (const Topology::Link& link : built.topology.links()) {
    boost::add_edge(index(link.from), index(link.to), graph);
  }
  for (std::size_t from = 0; from < built.devices.size(); ++from) {
    std::vector<std::size_t> links(built.topology.vertices(), 0);
    const auto counted = boost::record_distances(links.data(), boost::on_tree_edge());
    boost::breadth_first_search(graph, index(built.devices[from]),
                                boost::visitor(boost::make_bfs_visitor(counted)));
    for (std::size_t to = 0; to < built.devices.size(); ++to) {
      if (links[index(built.devices[to])] != built.route(from, to).size()) return false;
    }
  }
  return true;
}

/// Over how many routes of an all-to-all each link lies.
std::vector<int> all_to_all(const Interconnect& built) {
  std::vector<int> uses(built.topology.links().size(), 0);
  for (std::size_t from = 0; from < built.devices.size(); ++from) {
    for (std::size_t to = 0; to < built.devices.size(); ++to) {
      for (const LinkId link : built.route(from, to)) ++uses[index(link)];
    }
  }
  return uses;
}

bool between_switches(const Topology& topology, std::size_t link) {
  return topology.kind(topology.links()[link].from) == VertexKind::packet_switch &&
         topology.kind(topology.links()[link].to) == VertexKind::packet_switch;
}

/// What leaves the leaf of a device upwards, in all.
double uplinks_of_leaf(const Interconnect& built, std::size_t device) {
  const auto& links = built.topology.links();
  const Vertex leaf = std::find_if(links.begin(), links.end(), [&](const Topology::Link& link) {
                        return link.from == built.devices[device];
                      })->to;
  double sum = 0;
  for (std::size_t l = 0; l < links.size(); ++l) {
    if (links[l].from == leaf && between_switches(built.topology, l)) {
      sum += links[l].bandwidth.count();
    }
  }
  return sum;
}

TEST_CASE("A route is as late as its links together, and links join vertices that are there") {
  Topology topology;
  const Vertex a = topology.add_device();
  const Vertex b = topology.add_device();
  const Vertex s = topology.add_switch();
  const auto a_s = topology.connect(a, s, 1_GBps, 1_us);
  const auto s_b = topology.connect(s, b, 1_GBps, 2_us);
  CHECK(topology.latency({a_s.there, s_b.there}) == 3_us);
  CHECK(topology.joins({a_s.there, s_b.there}, a, b));
  CHECK_FALSE(topology.joins({a_s.there, s_b.back}, a, b));
  CHECK(refusal([&] { topology.add_link(a, Vertex{9}, 1_GBps, 1_us); }) ==
        "a link joins two vertices of its topology");
}

TEST_CASE("A topology gives its links to a network under their own numbers") {
  Topology topology;
  const Vertex a = topology.add_device();
  const Vertex b = topology.add_device();
  const auto cable = topology.connect(a, b, 3_GBps, 7_us);
  Engine engine;
  Network network{engine};
  topology.install(network);
  CHECK(network.bandwidth(cable.back) == 3_GBps);
  CHECK(network.latency(cable.back) == 7_us);
  CHECK(refusal([&] { topology.install(network); }) ==
        "a topology is installed into a network without links");
}

TEST_CASE("A two-level fat tree joins leaves by two cables and an all-to-all loads all alike") {
  // 8 leaves of 16 and 16 spines. A leaf's uplink s carries, from each of its 16 hosts, the traffic
  // to the 112 hosts elsewhere whose number is s modulo 16, 7 of them: 112 routes. So does a
  // spine's way down to a leaf: one host there, 112 senders.
  const Interconnect built = fat_tree(
      two_level({.devices = 128, .devices_per_leaf = 16, .bandwidth = 50_GBps, .latency = 500_ns}));
  CHECK(longest_valid_route(built) == 4);
  CHECK(all_shortest(built));
  const std::vector<int> uses = all_to_all(built);
  for (std::size_t l = 0; l < uses.size(); ++l) {
    REQUIRE(uses[l] == (between_switches(built.topology, l) ? 112 : 127));
  }
}

TEST_CASE("A three-level fat tree climbs no further than it must, and spreads alike") {
  // 4 hosts per leaf, 4 leaves per pod, 3 pods: 4 aggregation switches per pod, 4 cores above each.
  const Interconnect built = fat_tree(three_level({.devices = 48,
                                                   .devices_per_leaf = 4,
                                                   .leaves_per_pod = 4,
                                                   .bandwidth = 50_GBps,
                                                   .latency = 500_ns}));
  CHECK(longest_valid_route(built) == 6);
  CHECK(all_shortest(built));
  CHECK(built.route(0, 3).size() == 2);
  CHECK(built.route(0, 4).size() == 4);
  CHECK(built.route(0, 16).size() == 6);
  // Leaf to aggregation: 4 hosts x 44 elsewhere / 4 cables. Aggregation to core: 16 hosts x 32 in
  // other pods / 16 cables of the pod.
  std::multiset<int> expected;
  for (int i = 0; i < 48 * 2; ++i) expected.insert(47);
  for (int i = 0; i < 12 * 4 * 2; ++i) expected.insert(44);
  for (int i = 0; i < 12 * 4 * 2; ++i) expected.insert(32);
  const std::vector<int> uses = all_to_all(built);
  CHECK(std::multiset<int>(uses.begin(), uses.end()) == expected);
}

TEST_CASE("D-mod-k gives a shift of any distance a cable of its own for every flow") {
  // Zahavi 2010: on a full tree, host i sending to i + shift never shares a cable.
  const Interconnect built = fat_tree(three_level({.devices = 64,
                                                   .devices_per_leaf = 4,
                                                   .leaves_per_pod = 4,
                                                   .bandwidth = 50_GBps,
                                                   .latency = 500_ns}));
  for (std::size_t shift = 1; shift < 64; ++shift) {
    std::vector<int> uses(built.topology.links().size(), 0);
    for (std::size_t i = 0; i < 64; ++i) {
      for (const LinkId link : built.route(i, (i + shift) % 64)) ++uses[index(link)];
    }
    REQUIRE(*std::max_element(uses.begin(), uses.end()) == 1);
  }
}

TEST_CASE("All routes to one device come down from one switch, wherever they begin") {
  const Interconnect built = fat_tree(three_level({.devices = 48,
                                                   .devices_per_leaf = 4,
                                                   .leaves_per_pod = 4,
                                                   .bandwidth = 50_GBps,
                                                   .latency = 500_ns}));
  for (std::size_t to = 0; to < 16; ++to) {
    std::set<LinkId> from_core;
    for (std::size_t from = 16; from < 48; ++from) from_core.insert(built.route(from, to)[3]);
    REQUIRE(from_core.size() == 1);
  }
}

TEST_CASE("A tree of many levels, with devices on two leaves, has routes as short as any") {
  const Interconnect built = fat_tree({.devices = 40,
                                       .levels = {{.children = 2, .parents = 2},
                                                  {.children = 3, .parents = 2},
                                                  {.children = 2, .parents = 3},
                                                  {.children = 4, .parents = 2}}});
  CHECK(longest_valid_route(built) == 8);
  CHECK(all_shortest(built));
}

TEST_CASE("An oversubscribed leaf has its share of uplinks, to the last byte per second") {
  // 16 hosts of 50 GB/s over 3: 800 / 3 GB/s up, on 5 spines.
  const FatTree shape = two_level({.devices = 64,
                                   .devices_per_leaf = 16,
                                   .oversubscription = 3,
                                   .bandwidth = 50_GBps,
                                   .latency = 500_ns});
  CHECK(shape.levels[1].parents == 5);
  const Interconnect built = fat_tree(shape);
  CHECK(uplinks_of_leaf(built, 0) == Approx(800e9 / 3).epsilon(1e-12));
  CHECK(longest_valid_route(built) == 4);
  // A leaf thinner than one host's link still has one spine.
  CHECK(two_level({.devices = 4, .devices_per_leaf = 2, .oversubscription = 4}).levels[1].parents ==
        1);
}

TEST_CASE("Devices that do not fill their last leaf get no switches that they do not need") {
  // 5 hosts, 4 per leaf: 2 leaves and 4 spines; 5 + 2 x 4 cables.
  const Interconnect built = fat_tree(
      two_level({.devices = 5, .devices_per_leaf = 4, .bandwidth = 1_GBps, .latency = 1_us}));
  CHECK(built.topology.vertices() == 5 + 2 + 4);
  CHECK(built.topology.links().size() == 2 * (5 + 8));
  CHECK(longest_valid_route(built) == 4);
  for (int devices = 1; devices < 40; ++devices) {
    const Interconnect partial = fat_tree(three_level({.devices = devices,
                                                       .devices_per_leaf = 3,
                                                       .leaves_per_pod = 4,
                                                       .oversubscription = 1.5,
                                                       .bandwidth = 1_GBps,
                                                       .latency = 1_us}));
    REQUIRE(longest_valid_route(partial) == (devices == 1    ? 0
                                             : devices <= 3  ? 2
                                             : devices <= 12 ? 4
                                                             : 6));
    REQUIRE(all_shortest(partial));
  }
}

TEST_CASE("A torus goes the shorter way round, dimension by dimension") {
  const Interconnect built =
      torus({.dimensions = {4, 3, 2}, .bandwidth = 50_GBps, .latency = 500_ns});
  REQUIRE(built.devices.size() == 24);
  CHECK(longest_valid_route(built) == 1 + 2 + 1 + 1 + 1);  // out, along each dimension, in
  CHECK(all_shortest(built));
  // 2 links out along 4 and 3, 1 along 2; the device's own two.
  CHECK(built.topology.links().size() == 24 * (5 + 2));
}

TEST_CASE("A mesh has no way round, and routers may have several devices") {
  const Interconnect built = torus({.dimensions = {4, 3},
                                    .border = Border::ends,
                                    .devices_per_router = 2,
                                    .device_bandwidth = 25_GBps,
                                    .bandwidth = 50_GBps,
                                    .latency = 500_ns});
  REQUIRE(built.devices.size() == 24);
  CHECK(longest_valid_route(built) == 1 + 3 + 2 + 1);
  CHECK(all_shortest(built));
  // 3 cables along each of 3 rows, 2 along each of 4 columns, 24 to devices; two links each.
  CHECK(built.topology.links().size() == 2 * (9 + 8 + 24));
}

TEST_CASE("A dragonfly crosses one cable between groups and at most one in each") {
  // a = 4 routers, h = 2: up to 9 groups; with 2 devices each 72.
  const Dragonfly shape{.groups = 9,
                        .routers = 4,
                        .devices_per_router = 2,
                        .global_per_router = 2,
                        .device_bandwidth = 25_GBps,
                        .local_bandwidth = 25_GBps,
                        .global_bandwidth = 25_GBps,
                        .latency = 200_ns,
                        .global_latency = 1_us};
  const Interconnect built = dragonfly(shape);
  REQUIRE(built.devices.size() == 72);
  CHECK(longest_valid_route(built) == 5);
  // Between two groups there is one cable: 8 x 8 devices use it each way; a router has 2 of them.
  const std::vector<int> uses = all_to_all(built);
  const auto& links = built.topology.links();
  for (std::size_t l = 0; l < links.size(); ++l) {
    if (links[l].latency != 1_us) continue;
    REQUIRE(uses[l] == 64);
    REQUIRE(std::count_if(links.begin(), links.end(), [&](const Topology::Link& other) {
              return other.latency == 1_us && other.from == links[l].from;
            }) == 2);
  }
  Dragonfly wide = shape;
  wide.groups = 10;
  CHECK(refusal([&] { dragonfly(wide); }) == "a dragonfly has at most a h + 1 groups");
}

TEST_CASE("Few groups of a dragonfly are joined by all of their global cables, used alike") {
  // a = 4, h = 2: 8 cables of a group, 4 to each of 2 others; 8 x 8 devices over 4 cables.
  const Interconnect built = dragonfly({.groups = 3,
                                        .routers = 4,
                                        .devices_per_router = 2,
                                        .global_per_router = 2,
                                        .device_bandwidth = 25_GBps,
                                        .local_bandwidth = 25_GBps,
                                        .global_bandwidth = 25_GBps,
                                        .latency = 200_ns,
                                        .global_latency = 1_us});
  CHECK(longest_valid_route(built) == 5);
  const std::vector<int> uses = all_to_all(built);
  const auto& links = built.topology.links();
  std::size_t across = 0;
  for (std::size_t l = 0; l < links.size(); ++l) {
    if (links[l].latency != 1_us) continue;
    ++across;
    REQUIRE(uses[l] == 16);
  }
  CHECK(across == 3 * 2 * 4);
}

/// Routes of one flow between each two devices under a choice, each checked.
std::vector<int> uses_by(const Interconnect& built, PathChoice choice) {
  std::vector<int> uses(built.topology.links().size(), 0);
  for (std::size_t from = 0; from < built.devices.size(); ++from) {
    for (std::size_t to = 0; to < built.devices.size(); ++to) {
      const std::vector<double> loads(uses.begin(), uses.end());
      Route route;
      built.append({.from = from, .to = to, .choice = choice, .loads = loads}, route);
      REQUIRE(built.topology.joins(route, built.devices[from], built.devices[to]));
      for (const LinkId link : route) ++uses[index(link)];
    }
  }
  return uses;
}

TEST_CASE("A hash spreads flows over all spines unevenly, the emptiest cable evenly") {
  // 4 leaves of 4 hosts and 4 spines: 4 x 12 flows leave a leaf, 12 on each cable if spread alike.
  const Interconnect built = fat_tree(
      two_level({.devices = 16, .devices_per_leaf = 4, .bandwidth = 50_GBps, .latency = 500_ns}));
  const std::vector<int> hashed = uses_by(built, PathChoice::by_hash);
  const std::vector<int> emptiest = uses_by(built, PathChoice::least_loaded);
  std::vector<int> on_spines;
  for (std::size_t l = 0; l < hashed.size(); ++l) {
    if (!between_switches(built.topology, l)) continue;
    on_spines.push_back(hashed[l]);
    CHECK(emptiest[l] >= 9);
    CHECK(emptiest[l] <= 15);
  }
  CHECK(*std::min_element(on_spines.begin(), on_spines.end()) >= 1);
  CHECK(*std::max_element(on_spines.begin(), on_spines.end()) > 15);
  CHECK(hashed == uses_by(built, PathChoice::by_hash));
  Route route;
  CHECK(refusal([&] {
          built.append({.from = 0, .to = 9, .choice = PathChoice::least_loaded}, route);
        }) == "the least loaded cable is chosen by the load of every link");
}

TEST_CASE("The cables up from a switch as one trunk carry their sum, and a forest has no way out") {
  // 6 hosts per leaf at 2 : 1: 3 cables; 4 leaves under a pod's trunk of 4 x 3 cables at 3 : 1.
  const ClosFabric fabric{.devices = 48,
                          .devices_per_leaf = 6,
                          .leaves_per_pod = 4,
                          .oversubscription = 2,
                          .oversubscription_above = 3,
                          .uplinks = Uplinks::trunk,
                          .bandwidth = 50_GBps,
                          .latency = 500_ns};
  const FatTree trunks = three_level(fabric);
  CHECK(trunks.levels[1].parents == 1);
  CHECK(trunks.levels[1].bandwidth == 150_GBps);
  CHECK(trunks.levels[2].parents == 1);
  CHECK(trunks.levels[2].bandwidth == 200_GBps);
  CHECK(longest_valid_route(fat_tree(trunks)) == 6);

  const Interconnect forest =
      fat_tree({.devices = 8, .levels = {{.children = 4, .bandwidth = 1_GBps}}, .trees = 2});
  CHECK(forest.route(4, 7).size() == 2);
  CHECK(refusal([&] { forest.route(3, 4); }) == "no cable joins these two devices");
}

TEST_CASE("Shapes that cannot be are refused") {
  CHECK(refusal([] { fat_tree({}); }) == "a fat tree has devices and levels");
  CHECK(refusal([] { fat_tree({.devices = 5, .levels = {{.children = 4, .parents = 1}}}); }) ==
        "a fat tree has too many devices");
  CHECK(refusal([] { fat_tree({.devices = 1, .levels = {{.children = 0, .parents = 1}}}); }) ==
        "a level of a fat tree has at least 1 child and 1 parent");
  CHECK(refusal([] { two_level({.devices = 4, .devices_per_leaf = 0}); }) ==
        "a fabric has at least 1 device, 1 per leaf and 1 leaf per pod");
  CHECK(refusal([] { three_level({.devices = 4, .devices_per_leaf = 2}); }) ==
        "a fabric has at least 1 device, 1 per leaf and 1 leaf per pod");
  CHECK(refusal([] { two_level({.devices = 4, .devices_per_leaf = 2, .oversubscription = 0}); }) ==
        "an oversubscription is above 0");
  CHECK(refusal([] { torus({}); }) == "a torus has a dimension");
  CHECK(refusal([] {
          torus({.dimensions = {2, 0}});
        }) == "a dimension of a torus has at least 1 device");
  const Interconnect built = torus({.dimensions = {2}, .bandwidth = 1_GBps, .latency = 1_us});
  CHECK(refusal([&] { built.route(0, 2); }) == "a route joins two devices of its topology");
}

}  // namespace
}  // namespace orrery
