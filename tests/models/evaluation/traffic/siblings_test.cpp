// Traffic against closed forms: a collective alone, all rings of an axis at once, channels.

#include <catch2/catch.hpp>

#include <memory>

#include "models/evaluation/traffic/evaluate.hpp"
#include "models/network/collectives/collective.hpp"
#include "models/network/fabric/fabric_graph.hpp"
#include "models/network/fabric/inside_links.hpp"
#include "models/network/placement.hpp"
#include "tests/models/evaluation/programs.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

struct Leaves {
  int nodes_per_leaf;
  double oversubscription;
  int nics;
  hardware::Routing routing;
};

hardware::Cluster tree_of_nodes(int nodes, const Leaves& leaves) {
  hardware::Cluster cluster = hardware::named_cluster("dgx-h100 x " + std::to_string(nodes));
  cluster.node.nics = leaves.nics;
  cluster.node.gpu_nics.clear();
  cluster.fabric.kind = hardware::FabricKind::fat_tree;
  cluster.fabric.tree = {};
  cluster.fabric.nodes_per_leaf = leaves.nodes_per_leaf;
  cluster.fabric.oversubscription = leaves.oversubscription;
  cluster.fabric.routing = leaves.routing;
  return cluster;
}

NetworkSite site_on(const hardware::Cluster& cluster, std::size_t ranks) {
  NetworkSite site;
  const auto graph = std::make_shared<const FabricGraph>(cluster);
  for (std::uint32_t link = 0; link < graph->links(); ++link) {
    site.links.push_back(graph->capacity(LinkId{link}));
  }
  site.route = [graph](std::size_t from, std::size_t to, std::uint64_t flow, Route& route) {
    graph->route({.from = from, .to = to, .flow = flow}, route);
  };
  const InsideLinks inside{cluster, site.links.size()};
  for (std::size_t link = 0; link < inside.links(); ++link) {
    site.links.push_back(inside.capacity(graph->links() + link));
  }
  site.inside = inside.paths();
  site.ports_per_node = static_cast<std::uint32_t>(cluster.node.nics);
  site.port = cluster.nic_bandwidth();
  site.placement = contiguous(ranks, static_cast<std::uint32_t>(cluster.node.gpus));
  return site;
}

/// A step that is nothing but one all-reduce of each data-parallel group.
Case all_reduce(std::int64_t tensor, std::int64_t data, Time alone) {
  Case made;
  PipelineShape shape;
  shape.stages = shape.virtual_stages = 1;
  shape.micro_batches = 0;
  add_schedule(*made.program, "gpipe", shape, {.tensor = tensor, .data = data});
  made.program->classes[0].instructions.clear();
  made.priced.program = made.program.get();
  JointCollective joint;
  joint.communicator = data_group;
  joint.classes = {0};
  append_joint(made, Opcode::reduce_gradient, std::move(joint), Time{}, alone);
  made.priced.collectives[0].links = {.nic = alone, .nvlink = {}};
  made.priced.collectives[0].fluid = alone;
  return made;
}

Time network_time(const hardware::Cluster& cluster, const GroupShape& shape, LinkSharing sharing) {
  return price(Collective::all_reduce, 8_GB, shape, cluster, {.sharing = sharing}).links.nic;
}

Time step_of(const Case& made, const NetworkSite& site) {
  const Traffic traffic = traffic_of(made.priced, site);
  return traffic.maps_exact ? evaluate_maps(made.priced).step
                            : evaluate_network(traffic).times.step;
}

TEST_CASE("All rings of an axis at once get the share that the cost model gives siblings") {
  using hardware::Routing;
  const Leaves leaves =
      GENERATE(Leaves{1, 1, 8, Routing::d_mod_k}, Leaves{1, 2, 8, Routing::d_mod_k},
               Leaves{1, 4, 8, Routing::d_mod_k}, Leaves{2, 4, 8, Routing::d_mod_k},
               Leaves{4, 8, 8, Routing::d_mod_k}, Leaves{4, 2, 8, Routing::d_mod_k},
               Leaves{1, 8, 8, Routing::spray}, Leaves{2, 4, 8, Routing::spray},
               Leaves{4, 1, 4, Routing::d_mod_k}, Leaves{4, 1, 2, Routing::spray});
  const int nodes = GENERATE(8, 32);
  const hardware::Cluster cluster = tree_of_nodes(nodes, leaves);
  const GroupShape shape =
      shape_of({.stride = 8, .extent = nodes, .world = 8 * nodes, .gpus_per_node = 8});
  const Time together = network_time(cluster, shape, LinkSharing::with_siblings);
  const Case made = all_reduce(8, nodes, network_time(cluster, shape, LinkSharing::alone));
  const Time step = step_of(made, site_on(cluster, static_cast<std::size_t>(8 * nodes)));
  INFO(leaves.nodes_per_leaf << " nodes a leaf, oversubscribed " << leaves.oversubscription << ", "
                             << leaves.nics << " NICs, " << nodes << " nodes");
  CHECK(ratio(step, together) == Approx(1).epsilon(1e-9));  // doubles inside the cost model
}

TEST_CASE("Rings that leave pods share the links above spines as the cost model says") {
  // A node a leaf, four leaves a pod: a pod's four nodes send the bytes of one across.
  const auto [leaf, above] =
      GENERATE(std::pair{1.0, 8.0}, std::pair{1.0, 16.0}, std::pair{2.0, 4.0}, std::pair{2.0, 8.0},
               std::pair{4.0, 1.0});
  hardware::Cluster cluster = tree_of_nodes(32, {1, leaf, 8, hardware::Routing::spray});
  cluster.fabric.tree.levels = 3;
  cluster.fabric.tree.leaves_per_pod = 4;
  cluster.fabric.tree.oversubscription_above = above;
  const GroupShape shape = shape_of({.stride = 8, .extent = 32, .world = 256, .gpus_per_node = 8});
  const Time alone = network_time(cluster, shape, LinkSharing::alone);
  const Time together = network_time(cluster, shape, LinkSharing::with_siblings);
  INFO("oversubscribed " << leaf << " and " << above);
  CHECK(ratio(together, alone) == Approx(std::max(leaf, leaf * above / 4)));
  const Time step = step_of(all_reduce(8, 32, alone), site_on(cluster, 256));
  CHECK(ratio(step, together) == Approx(1).epsilon(1e-9));
}

TEST_CASE("Oversubscribed leaves send an r-th of what their nodes do, and one flow at full rate") {
  const double factor = GENERATE(1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0);
  const auto routing = GENERATE(hardware::Routing::d_mod_k, hardware::Routing::spray);
  const hardware::Cluster cluster = tree_of_nodes(12, {4, factor, 4, routing});
  const FabricGraph graph{cluster};
  Route route;
  graph.route({.from = 0, .to = graph.port(11, 3)}, route);
  REQUIRE(route.size() == 4);
  const Bandwidth nic = cluster.nic_bandwidth();
  for (const LinkId link : route) CHECK(graph.capacity(link).count() >= nic.count() * (1 - 1e-12));
  double up = 0;  // out of the first leaf, of four nodes with four NICs each
  const Vertex leaf = graph.topology().links()[index(graph.out_of(0))].to;
  for (const LinkId link : graph.links_of(leaf)) {
    const Topology::Link& each = graph.topology().links()[index(link)];
    if (each.from == leaf && each.to > leaf) up += each.bandwidth.count();
  }
  CHECK(up == Approx(16 * nic.count() / factor));
}

TEST_CASE("A trunk wider than all that could fill it is a link like others") {
  NetworkSite site = site_on(tree_of_nodes(4, {1, 1, 1, hardware::Routing::spray}), 4 * 8);
  for (Bandwidth& each : site.links) each = std::max(each, Bandwidth{3.2768e15});
  CHECK(traffic_of(all_reduce(8, 4, 1_ms).priced, site).maps_exact);
}

TEST_CASE("A ring alone ends at the picosecond of its price") {
  // One rank a node: 32 rings would share uplinks, one of 16 nodes shares nothing.
  hardware::Cluster cluster = tree_of_nodes(16, {4, 4, 1, hardware::Routing::d_mod_k});
  cluster.node.gpus = 1;
  const Case made = all_reduce(1, 16, Time{123'456'789'012});
  const Traffic every = traffic_of(made.priced, site_on(cluster, 16), Folding::none);
  CHECK(evaluate_network(every).times.step == Time{123'456'789'012});
}

TEST_CASE("A ring whose flows collide on its own takes as long as the fabric lets it") {
  // Two spines for 4 NICs a leaf: the ring of one node's four NICs puts two flows on an uplink.
  hardware::Cluster cluster = tree_of_nodes(4, {1, 2, 4, hardware::Routing::d_mod_k});
  cluster.node.gpus = 4;
  const Case made = all_reduce(1, 16, 1_ms);
  const Traffic traffic = traffic_of(made.priced, site_on(cluster, 16));
  CHECK_FALSE(traffic.maps_exact);
  CHECK(traffic.link_classes.empty());  // what it can have alone fills no link
  CHECK(evaluate_network(traffic).times.step == 2_ms);
}

/// Nodes of two GPUs on one PCIe switch, whose uplink leads to both NICs.
hardware::Cluster behind_one_switch(Bandwidth uplink) {
  hardware::Cluster cluster = tree_of_nodes(4, {4, 1, 2, hardware::Routing::d_mod_k});
  cluster.node.gpus = 2;
  cluster.fabric.efficiency = 1;
  const Bandwidth nic = cluster.nic_bandwidth();
  cluster.node.cables = {{"gpu0", "pcie0", nic},
                         {"gpu1", "pcie0", nic},
                         {"pcie0", "cpu0", uplink},
                         {"nic0", "cpu0", nic},
                         {"nic1", "cpu0", nic}};
  return cluster;
}

TEST_CASE("Two GPUs behind one PCIe switch share its uplink as they would share a cable") {
  // Two rings of four nodes, one of each GPU: at the rate of one NIC the uplink gives each half.
  const Case made = all_reduce(2, 4, 1_ms);
  const Bandwidth nic = tree_of_nodes(4, {4, 1, 2, hardware::Routing::d_mod_k}).nic_bandwidth();
  const NetworkSite narrow = site_on(behind_one_switch(nic), 8);
  CHECK(step_of(made, narrow) == 2_ms);
  CHECK(step_of(made, site_on(behind_one_switch(nic * 2.0), 8)) == 1_ms);
  CHECK(traffic_of(made.priced, site_on(behind_one_switch(nic * 2.0), 8)).maps_exact);
  // One ring over both GPUs of every node has a flow on each NIC, and meets itself.
  CHECK(step_of(all_reduce(1, 8, 1_ms), narrow) == 2_ms);
  // Efficiency is lost between nodes: inside, the same bytes are the smaller part of a link.
  hardware::Cluster lossy = behind_one_switch(nic);
  lossy.fabric.efficiency = 0.5;
  CHECK(step_of(made, site_on(lossy, 8)) == 1_ms);
  const InsideLinks links{behind_one_switch(nic), 100};
  CHECK(links.named("node2/pcie0 to cpu0"));
  CHECK(links.name(*links.named("node2/pcie0 to cpu0")) == "node2/pcie0 to cpu0");
  CHECK_FALSE(links.named("node4/pcie0 to cpu0"));
}

}  // namespace
}  // namespace orrery::models
