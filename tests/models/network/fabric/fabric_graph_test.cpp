#include "models/network/fabric/fabric_graph.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <map>
#include <set>

#include "hardware/catalogue.hpp"
#include "tests/sim/refusal.hpp"

namespace orrery::models {
namespace {

/// So many nodes with so many NICs over a fabric of 50 GB/s and 500 ns a cable.
hardware::Cluster over(const std::string& fabric, int nodes, int nics = 1) {
  const std::string text = fmt::format(
      R"({{"node": {{"like": "gh200-1x", "nics": {}}}, "nodes": {},
           "fabric": {{"bandwidth": "50 GB/s", "hop_latency": "500 ns", "latency_class": "ideal",
                      {}}}}})",
      nics, nodes, fabric);
  const Document document = Document::parse(text, "mine.json");
  return hardware::read_cluster(
      Document::from(hardware::expand_cluster(document.root()), "mine.json").root());
}

/// Every route joins its ports and is found again from its leaf; the longest one.
std::size_t longest_route(const FabricGraph& graph) {
  Route route, rest;
  std::size_t longest = 0;
  const auto& links = graph.topology().links();
  for (std::size_t from = 0; from < graph.ports(); ++from) {
    for (std::size_t to = 0; to < graph.ports(); ++to) {
      if (!graph.joined(from, to)) continue;
      graph.route({.from = from, .to = to}, route);
      longest = std::max(longest, route.size());
      if (from == to) continue;
      REQUIRE(route.front() == graph.out_of(from));
      REQUIRE(route.back() == graph.into(to));
      REQUIRE(graph.topology().joins(route, links[index(graph.out_of(from))].from,
                                     links[index(graph.into(to))].to));
      if (!graph.by_destination()) continue;
      graph.route_from_leaf(graph.leaf_of(from), to, rest);
      REQUIRE(rest == Route(route.begin() + 1, route.end()));
    }
  }
  return longest;
}

/// Links between switches by how many destinations lie behind them, seen from the leaves below.
std::multiset<int> destinations_of_uplinks(const FabricGraph& graph) {
  std::map<std::size_t, std::set<std::size_t>> behind;
  const std::size_t first_switch = graph.tiers().front().first;
  Route route;
  for (std::size_t leaf = 0; leaf < graph.leaves(); ++leaf) {
    for (std::size_t to = 0; to < graph.ports(); ++to) {
      graph.route_from_leaf(leaf, to, route);
      for (std::size_t hop = 0; hop + 1 < route.size(); ++hop) {
        const auto& link = graph.topology().links()[index(route[hop])];
        if (index(link.from) < index(link.to) && index(link.from) >= first_switch) {
          behind[index(route[hop])].insert(to);
        }
      }
    }
  }
  std::multiset<int> counts;
  for (const auto& [link, destinations] : behind) {
    counts.insert(static_cast<int>(destinations.size()));
  }
  return counts;
}

bool all_equal(const std::multiset<int>& counts) {
  return !counts.empty() && *counts.begin() == *counts.rbegin();
}

const std::string leaf16 = R"("kind": "fat_tree", "nodes_per_leaf": 16, )";

TEST_CASE("A fat tree of two levels has an uplink of each leaf to each spine, used alike") {
  // 128 hosts, 8 leaves, 4 spines: 2 x (128 + 8 x 4) links; 112 destinations over 4 uplinks.
  const FabricGraph graph{over(leaf16 + R"("spines": 4, "routing": "d-mod-k")", 128)};
  CHECK(graph.ports() == 128);
  CHECK(graph.leaves() == 8);
  CHECK(graph.links() == 2 * (128 + 8 * 4));
  CHECK(graph.leaf_of(17) == 1);
  CHECK(longest_route(graph) == 4);
  const auto counts = destinations_of_uplinks(graph);
  CHECK(counts.size() == 8 * 4);
  CHECK(all_equal(counts));
  CHECK(*counts.begin() == 28);
  CHECK(graph.capacity(graph.out_of(5)) == 50_GBps);
  CHECK(graph.latency(graph.out_of(5)) == 500_ns);
}

TEST_CASE("Oversubscription instead of spines is the same tree, both must agree") {
  const auto stated = over(leaf16 + R"("oversubscription": 4, "routing": "d-mod-k")", 128);
  CHECK(FabricGraph{stated}.links() == 2 * (128 + 8 * 4));
  CHECK(over(leaf16 + R"("spines": 5)", 96).fabric.oversubscription == 3.2);
  CHECK(over(leaf16 + R"("spines": 5, "oversubscription": 3.2)", 96).fabric.tree.spines == 5);
  CHECK(refusal([] { over(leaf16 + R"("spines": 5, "oversubscription": 4)", 96); }) ==
        "mine.json:/fabric/oversubscription: 16 cables down and 5 spines up make an "
        "oversubscription of 3.2, found 4");
}

TEST_CASE("Sprayed, the uplinks of a leaf are one trunk of their sum") {
  const FabricGraph graph{over(leaf16 + R"("spines": 5)", 96)};  // not InfiniBand: sprayed
  CHECK(graph.routing() == hardware::Routing::spray);
  CHECK(graph.links() == 2 * (96 + 6));
  const auto trunk = graph.link_named("leaf2 to spines");
  REQUIRE(trunk.has_value());
  CHECK(graph.capacity(*trunk) == 250_GBps);
  CHECK(longest_route(graph) == 4);
}

TEST_CASE("Three levels have pods with spines of their own, each with its cores") {
  // 96 ports, 4 a leaf: 24 leaves, pods of 4 with 2 spines at 2 : 1, each with 4 / 2 cores.
  const std::string pods =
      R"("kind": "fat_tree", "levels": 3, "nodes_per_leaf": 4, "leaves_per_pod": 4,
         "oversubscription": [2, 2], "routing": )";
  const FabricGraph graph{over(pods + R"("d-mod-k")", 96)};
  CHECK(graph.links() == 2 * (96 + 24 * 2 + 12 * 2));
  CHECK(longest_route(graph) == 6);
  CHECK(graph.name(graph.topology().links().back().from) == "core3");
  CHECK(graph.switch_named("pod5/spine1").has_value());
  CHECK(graph.links_of(*graph.switch_named("pod5/spine1")).size() == 2 * (4 + 2));
  const FabricGraph sprayed{over(pods + R"("spray")", 96)};
  CHECK(sprayed.links() == 2 * (96 + 24 + 6));
  CHECK(sprayed.capacity(*sprayed.link_named("leaf3 to pod0/spines")) == 100_GBps);
  CHECK(sprayed.capacity(*sprayed.link_named("pod0/spines to cores")) == 200_GBps);
  CHECK(longest_route(sprayed) == 6);
}

TEST_CASE("D-mod-k gives every uplink of a level as many destinations, on three levels too") {
  // 4 pods of 16 ports: 48 beyond a leaf's pod and 12 in it over 4 uplinks; 48 over 16 of a pod.
  const FabricGraph graph{over(R"("kind": "fat_tree", "levels": 3, "nodes_per_leaf": 4,
                                  "leaves_per_pod": 4, "routing": "d-mod-k")",
                               64)};
  std::multiset<int> expected;
  for (int i = 0; i < 16 * 4; ++i) expected.insert(60 / 4);
  for (int i = 0; i < 16 * 4; ++i) expected.insert(48 / 16);
  CHECK(destinations_of_uplinks(graph) == expected);
}

TEST_CASE(
    "A hash parts flows of one pair, and the emptiest uplink is taken where loads are known") {
  const auto spread = [](const FabricGraph& graph, std::span<const double> loads) {
    std::set<Route> routes;
    Route route;
    for (std::uint64_t flow = 0; flow < 64; ++flow) {
      graph.route({.from = 0, .to = 40, .flow = flow, .loads = loads}, route);
      routes.insert(route);
    }
    return routes;
  };
  const FabricGraph hashed{over(leaf16 + R"("spines": 8, "routing": "ecmp")", 64)};
  CHECK_FALSE(hashed.by_destination());
  CHECK(spread(hashed, {}).size() == 8);
  CHECK(longest_route(hashed) == 4);

  const FabricGraph adaptive{over(leaf16 + R"("spines": 8, "routing": "adaptive")", 64)};
  std::vector<double> loads(adaptive.links(), 1);
  for (const char* name : {"leaf0 to spine5", "spine5 to leaf2", "leaf0 to spine2"}) {
    loads[index(*adaptive.link_named(name))] = 0;
  }
  const std::set<Route> taken = spread(adaptive, loads);  // spine2's way down is not empty
  CHECK(taken.size() == 1);
  CHECK(adaptive.name(taken.begin()->at(1)) == "leaf0 to spine5");
  CHECK(refusal([&] {
          spread(adaptive, {});
        }).rfind("/cluster/fabric/routing: adaptive routing needs the load of every link", 0) == 0);
}

TEST_CASE("On rails a port meets its rail at its leaf, and other rails above or never") {
  const std::string unit = R"("nodes_per_leaf": 4, "routing": "d-mod-k", "kind": )";
  const FabricGraph met{over(unit + R"("rail_optimised")", 6, 4)};
  Route route;
  const auto cables = [&](const FabricGraph& graph, std::size_t from, std::size_t to) {
    graph.route({.from = from, .to = to}, route);
    return route.size();
  };
  CHECK(longest_route(met) == 4);
  CHECK(cables(met, met.port(0, 2), met.port(3, 2)) == 2);  // one rail, one unit
  CHECK(cables(met, met.port(0, 2), met.port(4, 2)) == 4);  // the next unit
  CHECK(cables(met, met.port(0, 2), met.port(0, 1)) == 4);  // another rail of the same node
  CHECK(met.name(met.out_of(met.port(5, 3))) == "node5/nic3 to rail3/leaf1");

  const FabricGraph apart{over(unit + R"("rail_only")", 6, 4)};
  CHECK(longest_route(apart) == 4);
  CHECK(apart.leaves() == 8);
  CHECK(apart.name(apart.out_of(apart.port(5, 3))) == "node5/nic3 to rail3/leaf1");
  CHECK(apart.switch_named("rail3/spine3").has_value());
  CHECK_FALSE(apart.joined(apart.port(0, 2), apart.port(3, 1)));
  CHECK(refusal([&] { cables(apart, apart.port(0, 2), apart.port(3, 1)); }) ==
        "rails that never meet join ports of one rail only");
}

TEST_CASE("A dragonfly, a torus and a mesh have their own counts") {
  const FabricGraph groups{over(R"("kind": "dragonfly", "nodes_per_leaf": 2,
                                   "routers_per_group": 4, "global_cables": 2)",
                                24)};
  CHECK(groups.leaves() == 12);
  CHECK(groups.links() == 2 * 24 + 12 * 3 + 3 * 2 * 4);
  CHECK(longest_route(groups) == 5);
  CHECK(groups.switch_named("group2/router3").has_value());
  std::set<std::string> names;  // two cables of a router to each of two routers
  for (std::size_t l = 0; l < groups.links(); ++l) {
    const LinkId link{static_cast<std::uint32_t>(l)};
    CHECK(names.insert(groups.name(link)).second);
    CHECK(groups.link_named(groups.name(link)) == link);
  }
  CHECK(names.count("group0/router0 to group1/router2, cable 2") == 1);

  const FabricGraph torus{over(R"("kind": "torus", "dimensions": [4, 3, 2])", 24, 2)};
  CHECK(torus.links() == 2 * 48 + 24 * 5);
  CHECK(longest_route(torus) == 2 + 2 + 1 + 1);
  const auto cable = torus.link_named("router3.2.1 to router0.2.1");
  REQUIRE(cable.has_value());
  CHECK(torus.capacity(*cable) == 100_GBps);  // as much as both NICs of a node

  const FabricGraph mesh{over(R"("kind": "mesh", "dimensions": [4, 3], "cables": 1)", 12, 2)};
  CHECK(longest_route(mesh) == 2 + 3 + 2);
  CHECK_FALSE(mesh.link_named("router3.0 to router0.0").has_value());
}

TEST_CASE("A torus without dimensions is nearest to a cube that has room") {
  const auto dimensions = [](int nodes) {
    return over(R"("kind": "torus")", nodes).fabric.direct.dimensions;
  };
  CHECK(dimensions(64) == std::vector<int>{4, 4, 4});
  CHECK(dimensions(128) == std::vector<int>{4, 4, 8});
  CHECK(dimensions(13) == std::vector<int>{2, 2, 4});
  for (int nodes = 1; nodes < 700; ++nodes) {
    const std::vector<int> sides = dimensions(nodes);
    CHECK(sides[0] * sides[1] * sides[2] >= nodes);
    CHECK(sides[0] * sides[1] * sides[2] <= nodes + nodes / 3 + 3);
    CHECK((sides[0] <= sides[1] && sides[1] <= sides[2] && sides[2] <= 2 * sides[0]));
  }
}

TEST_CASE("The longest path of a fabric is what its latency says") {
  for (const auto& [fabric, nodes] : std::map<std::string, int>{
           {leaf16 + R"("spines": 4)", 128},
           {leaf16 + R"("spines": 3)", 16},
           {R"("kind": "fat_tree", "levels": 1)", 20},
           {R"("kind": "fat_tree", "levels": 3, "nodes_per_leaf": 4, "leaves_per_pod": 4)", 96},
           {R"("kind": "fat_tree", "levels": 3, "nodes_per_leaf": 4, "leaves_per_pod": 4)", 15},
           {R"("kind": "dragonfly", "nodes_per_leaf": 2, "routers_per_group": 4)", 24},
           {R"("kind": "dragonfly", "nodes_per_leaf": 2, "routers_per_group": 4)", 8},
           {R"("kind": "torus", "dimensions": [4, 3, 2])", 24},
           {R"("kind": "mesh", "dimensions": [4, 3, 2])", 24}}) {
    INFO(fabric);
    const hardware::Cluster cluster = over(fabric, nodes);
    const std::size_t longest = longest_route(FabricGraph{cluster});
    CHECK(cluster.fabric.longest_path == static_cast<int>(longest));
    CHECK(cluster.collectives.network == 500_ns * static_cast<std::int64_t>(longest));
    CHECK(message_latency(cluster, 2) == 1_us);
  }
}

TEST_CASE("A latency of the fabric's own moves every network step by its difference") {
  // The class's 10 us were measured over 2.7 us of wire: 5 us more there are 5 us more here.
  const auto network = [](const std::string& change) {
    const std::string text = R"({"node": "dgx-h100", "nodes": 64, "fabric":
        {"like": "infiniband-rails-2")" +
                             change + "}}";
    const Document document = Document::parse(text, "mine.json");
    const Document whole = Document::from(hardware::expand_cluster(document.root()), "mine.json");
    return hardware::read_cluster(whole.root());
  };
  CHECK(network("").collectives.network == 10_us);
  CHECK(network(R"(, "latency": "7.7 us")").collectives.network == 15_us);
  // Four cables of 1 us across leaves; two within one: 2 us less.
  const hardware::Cluster hops = network(R"(, "hop_latency": "1 us")");
  CHECK(hops.collectives.network == 10_us + 4_us - 2700_ns);
  CHECK(message_latency(hops, 2) == 10_us + 2_us - 2700_ns);
  CHECK(message_latency(network(""), 2) == 10_us);
}

TEST_CASE("Every node of the catalogue has a network between 64 of it") {
  Route route;
  for (const std::string& name : hardware::Catalogue::nodes()) {
    INFO(name);
    const hardware::Cluster cluster = hardware::named_cluster(name + " x 64");
    if (cluster.node.nics == 0) continue;
    const FabricGraph graph{cluster};
    CHECK(graph.ports() == static_cast<std::size_t>(64 * cluster.node.nics));
    graph.route({.from = 0, .to = graph.port(63, 0)}, route);
    CHECK(static_cast<int>(route.size()) == cluster.fabric.longest_path);
    CHECK(graph.capacity(route.front()) == cluster.nic_bandwidth());
  }
}

TEST_CASE("Fabrics that cannot be are refused by their pointer") {
  const auto refused = [](const std::string& fabric, int nodes = 64, int nics = 2) {
    return refusal([&] { over(fabric, nodes, nics); });
  };
  const std::string place = "mine.json:/fabric";
  CHECK(refused(R"("kind": "ring")") ==
        place + R"(/kind: expected one of "none", "fat_tree", "rail_optimised", "rail_only", )"
                R"("dragonfly", "torus", "mesh", found "ring")");
  CHECK(refused(R"("kind": "torus", "dimensions": [])") ==
        place + "/dimensions: expected a list of 1 to 8 sizes, found []");
  CHECK(refused(R"("kind": "torus", "dimensions": [4, 4])") ==
        place + "/dimensions: these dimensions have room for 16 nodes, found 64");
  CHECK(refused(R"("kind": "torus", "dimensions": [8, 8], "levels": 2)") ==
        place + "/levels: does not apply to a fabric of kind torus");
  CHECK(refused(R"("kind": "mesh", "dimensions": [8, 8], "routing": "ecmp")") ==
        place + "/routing: does not apply to a torus or mesh, which routes dimension by dimension");
  CHECK(refused(R"("kind": "dragonfly", "nodes_per_leaf": 1, "routers_per_group": 2,
                   "global_cables": 1)") ==
        place + ": 64 nodes make 32 groups of 2; global_cables connect at most 3 groups");
  CHECK(refused(R"("kind": "dragonfly", "routing": "spray")")
            .rfind(place + R"(/routing: expected "d-mod-k", "ecmp" or "adaptive" on a dragonfly)",
                   0) == 0);
  CHECK(refused(leaf16 + R"("levels": 1)") ==
        place + "/levels: one level of switches connects at most 16 nodes, found 64");
  CHECK(refused(leaf16 + R"("levels": 4)") ==
        place + "/levels: expected an integer from 1 to 3, found 4");
  CHECK(refused(leaf16 + R"("oversubscription": [2, 2])") ==
        place +
            "/oversubscription: expected one value, or a list of 1 (one per level below the top), "
            "found 2");
  CHECK(refused(leaf16 + R"("leaves_per_pod": 4)") ==
        place + "/leaves_per_pod: leaves_per_pod needs 3 levels of switches");
  CHECK(refused(leaf16 + R"("pxn": true)") ==
        place + "/pxn: pxn applies only to fabrics with rails");
  CHECK(refused(R"("kind": "rail_only", "pxn": false)") ==
        place + "/pxn: rail_only needs pxn, because its rails are not connected");
  CHECK(refused(R"("kind": "rail_optimised", "levels": 3, "nodes_per_leaf": 4,
                   "leaves_per_pod": 7)") ==
        place + "/leaves_per_pod: expected a multiple of the 2 rails, found 7");
  const hardware::Cluster vast =
      over(R"("kind": "rail_optimised", "nodes_per_leaf": 1000000)", 64, 64);
  CHECK(refusal([&] { FabricGraph{vast}; }) ==
        "/cluster/fabric: 1.28e+08 links; at most 16777216 are simulated");
}

}  // namespace
}  // namespace orrery::models
