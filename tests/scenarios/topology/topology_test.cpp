#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "hardware/catalogue.hpp"
#include "scenarios/topology/bill.hpp"
#include "scenarios/topology/bisection.hpp"
#include "scenarios/topology/layout.hpp"
#include "scenarios/topology/topology_facts.hpp"

namespace orrery::scenarios {
namespace {

hardware::Cluster cluster_of(const std::string& fabric, int nodes, int nics = 1) {
  const std::string text = R"({"name": "mine", "node": {"like": "gh200-1x", "nics": )" +
                           std::to_string(nics) + R"(}, "nodes": )" + std::to_string(nodes) +
                           R"(, "fabric": {"latency_class": "ideal", )" + fabric + "}}";
  const Document document = Document::parse(text, "mine.json");
  return hardware::read_cluster(
      Document::from(hardware::expand_cluster(document.root()), "mine.json").root());
}

double cut_of(const hardware::Cluster& cluster) {
  return bisection(models::FabricGraph{cluster}, static_cast<std::size_t>(cluster.nodes))->count();
}

TEST_CASE("A bisection is what the links between two halves of the nodes carry") {
  // Half of 32 NICs of 50 GB/s behind 2 leaves of 16 and 4 spines: 4 x 50 GB/s between them.
  const std::string tree = R"("kind": "fat_tree", "nodes_per_leaf": 16, "spines": 4)";
  CHECK(cut_of(cluster_of(tree, 32)) == 200e9);
  CHECK(cut_of(cluster_of(tree, 16)) == 400e9);  // one leaf: what 8 NICs send
  CHECK(cut_of(cluster_of(R"("kind": "fat_tree", "nodes_per_leaf": 4)", 32, 2)) == 1600e9);
  // 4 x 4 x 4: a cut of two planes of 16 cables. A ring of 8 nodes: 2 cables; open: 1.
  CHECK(cut_of(cluster_of(R"("kind": "torus", "dimensions": [4, 4, 4])", 64)) == 1600e9);
  CHECK(cut_of(cluster_of(R"("kind": "torus", "dimensions": [8])", 8)) == 100e9);
  CHECK(cut_of(cluster_of(R"("kind": "mesh", "dimensions": [8])", 8)) == 50e9);
  CHECK_FALSE(bisection(models::FabricGraph{cluster_of(tree, 1)}, 1).has_value());
}

TEST_CASE("What a topology says: switches, cables, paths and names of links") {
  const Json facts = topology_facts(cluster_of(
      R"("kind": "fat_tree", "nodes_per_leaf": 4, "spines": 2, "hop_latency": "500 ns",
         "routing": "d-mod-k")",
      16));
  const Json& fabric = facts["fabric"];
  CHECK(fabric["switches"] == Json::parse(R"([
      {"kind": "leaf", "count": 4, "first": "leaf0", "last": "leaf3", "ports": null,
       "most_ports_used": 6.0},
      {"kind": "spine", "count": 2, "first": "spine0", "last": "spine1", "ports": null,
       "most_ports_used": 4.0}])"));
  CHECK(fabric["cables"] == Json::parse(R"([
      {"from": "nic", "to": "leaf", "count": 16, "pairs": 16, "bytes_per_s": 5e10},
      {"from": "leaf", "to": "spine", "count": 8, "pairs": 8, "bytes_per_s": 5e10}])"));
  CHECK(fabric["paths"] == Json::parse(R"([
      {"cables": 2, "latency_s": 1e-06, "nodes": 3, "from": "node0/nic0", "to": "node1/nic0"},
      {"cables": 4, "latency_s": 2e-06, "nodes": 12, "from": "node0/nic0", "to": "node4/nic0"}])"));
  CHECK(fabric["bisection_bytes_per_s"] == 200e9);
  CHECK(fabric["half_of_nics_bytes_per_s"] == 400e9);
  CHECK(fabric["links"] == 48);
  CHECK(fabric["link_names"].size() == 48);
  CHECK(std::count(fabric["link_names"].begin(), fabric["link_names"].end(),
                   Json("leaf0 to spine1")) == 1);
  CHECK(topology_text(facts, false).find("bisection 200 GB/s: 0.5 of what") != std::string::npos);
  CHECK(topology_facts(hardware::named_cluster("dgx-h100"))["fabric"]["paths"].empty());
}

TEST_CASE("A picture draws every cable of a fabric once, between the boxes that it joins") {
  for (const auto& [fabric, nics] : std::vector<std::pair<std::string, int>>{
           {R"("kind": "fat_tree", "nodes_per_leaf": 4)", 2},
           {R"("kind": "fat_tree", "levels": 3, "nodes_per_leaf": 4)", 1},
           {R"("kind": "rail_optimised", "nodes_per_leaf": 5)", 4},
           {R"("kind": "rail_only", "nodes_per_leaf": 8)", 4},
           {R"("kind": "dragonfly", "nodes_per_leaf": 2, "routers_per_group": 4)", 1},
           {R"("kind": "torus", "dimensions": [4, 3, 2])", 1},
           {R"("kind": "mesh", "dimensions": [5, 5])", 2}}) {
    INFO(fabric);
    const hardware::Cluster cluster = cluster_of(fabric, 24, nics);
    const FabricBill bill = bill_of(cluster);
    const Picture picture = fabric_picture(cluster);
    std::set<std::string> boxes, drawn;
    for (const PictureBox& box : picture.boxes) {
      CHECK(boxes.insert(box.name).second);
      CHECK(box.x > 0);
      CHECK(box.x < picture.width);
      CHECK(box.y > 0);
      CHECK(box.y < picture.height);
    }
    CHECK(boxes.size() == bill.switches.size() + 24);
    for (const PictureLine& line : picture.lines) {
      CHECK(drawn.insert(line.name).second);
      CHECK(boxes.count(line.to) == 1);
      CHECK(boxes.count(line.from.substr(0, line.from.find("/nic"))) == 1);
    }
    CHECK(picture.lines.size() == bill.cables.size());
  }
}

TEST_CASE("A cluster of too many cables is drawn in part, and says so") {
  const Picture picture = fabric_picture(hardware::named_cluster("dgx-h100 x 2048"));
  CHECK(picture.lines.size() <= 12'000);
  CHECK(picture.caption.find("; drawn: the first ") != std::string::npos);
}

TEST_CASE("SVG and HTML need nothing else, and names cannot break them") {
  Picture picture = node_picture(hardware::named_cluster("dgx-1-v100").node, "a <b> & 'c'");
  const std::string html = html_of(picture);
  CHECK(svg_of(picture).find("a &lt;b&gt; &amp; &#39;c&#39;") != std::string::npos);
  for (std::size_t at = html.find("http"); at != std::string::npos;
       at = html.find("http", at + 1)) {
    CHECK(html.substr(at, 26) == "http://www.w3.org/2000/svg");
  }
  CHECK(html.find("src=") == std::string::npos);
}

}  // namespace
}  // namespace orrery::scenarios
