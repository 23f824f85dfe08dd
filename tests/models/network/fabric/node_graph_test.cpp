#include "models/network/fabric/node_graph.hpp"

#include <catch2/catch.hpp>

#include "hardware/catalogue.hpp"
#include "tests/sim/refusal.hpp"

namespace orrery::models {
namespace {

std::string way(const NodeGraph& graph, const std::string& from, const std::string& to) {
  const auto route = graph.route(*graph.named(from), *graph.named(to));
  if (!route) return "none";
  std::string text = from;
  for (const LinkId link : *route) {
    text += " " + graph.name(graph.topology().links()[index(link)].to);
  }
  return text;
}

TEST_CASE("NICs serve GPUs in equal parts, or several GPUs share one") {
  hardware::NodeType node = hardware::named_cluster("dgx-1-v100").node;  // 8 GPUs, 4 NICs
  CHECK(nics_of(node, 0) == std::vector<int>{0});
  CHECK(nics_of(node, 3) == std::vector<int>{1});
  CHECK(nics_of(node, 7) == std::vector<int>{3});
  node.nics = 32;
  CHECK(nics_of(node, 1) == std::vector<int>{4, 5, 6, 7});
  node.gpu_nics = std::vector<std::vector<int>>(8, std::vector<int>{2});
  CHECK(nics_of(node, 7) == std::vector<int>{2});
  CHECK(refusal([&] { nics_of(node, 8); }) == "a GPU of the node is served by its NICs");
}

TEST_CASE("Inside a node routes go through switches and sockets, the widest of the shortest") {
  hardware::NodeType node = hardware::named_cluster("dgx-1-v100").node;
  node.gpus = 4;
  node.nics = 2;
  node.cables = {{"gpu0", "gpu1", 20_GBps},  {"gpu1", "gpu2", 40_GBps},  {"gpu0", "pcie0", 12_GBps},
                 {"gpu1", "pcie0", 12_GBps}, {"nic0", "pcie0", 12_GBps}, {"pcie0", "cpu0", 12_GBps},
                 {"gpu2", "pcie1", 12_GBps}, {"gpu3", "pcie1", 12_GBps}, {"nic1", "pcie1", 12_GBps},
                 {"pcie1", "cpu1", 12_GBps}, {"cpu0", "cpu1", 10_GBps}};
  const NodeGraph graph{node};
  CHECK(graph.stated());
  CHECK(way(graph, "gpu0", "gpu1") == "gpu0 gpu1");                        // NVLink
  CHECK(way(graph, "gpu0", "gpu2") == "gpu0 pcie0 cpu0 cpu1 pcie1 gpu2");  // through no GPU
  CHECK(way(graph, "gpu0", "nic0") == "gpu0 pcie0 nic0");
  CHECK(way(graph, "gpu0", "nic1") == "gpu0 pcie0 cpu0 cpu1 pcie1 nic1");
  node.cables.pop_back();
  CHECK(way(NodeGraph{node}, "gpu0", "nic1") == "none");
}

TEST_CASE("A node that names no cables has those that its kind and counts say") {
  const NodeGraph switched{hardware::named_cluster("dgx-h100").node};
  CHECK_FALSE(switched.stated());
  CHECK(way(switched, "gpu0", "gpu7") == "gpu0 nvswitch gpu7");
  CHECK(way(switched, "gpu3", "nic3") == "gpu3 pcie3 nic3");
  CHECK(switched.topology().links().size() == 2 * (8 + 8 + 8));
  const NodeGraph rack{hardware::named_cluster("gb200-nvl72").node};
  CHECK(way(rack, "gpu0", "gpu71") == "gpu0 nvswitch gpu71");
  const NodeGraph pairs{hardware::named_cluster("mi300x-8x").node};
  CHECK(way(pairs, "gpu0", "gpu7") == "gpu0 gpu7");
  const NodeGraph shared{hardware::named_cluster("l40s-8x").node};  // 4 GPUs a NIC
  CHECK(way(shared, "gpu5", "nic1") == "gpu5 pcie1 nic1");
  CHECK(way(shared, "gpu5", "gpu0") == "gpu5 host gpu0");
}

}  // namespace
}  // namespace orrery::models
