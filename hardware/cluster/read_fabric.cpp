#include "hardware/cluster/read_fabric.hpp"

#include <algorithm>

#include "hardware/cluster/fabric_shape.hpp"
#include "hardware/reading.hpp"
#include "hardware/sources.hpp"

namespace orrery::hardware {

namespace {

Switch read_switch(const Node& node) {
  node.only({"name", "ports", "bandwidth", "purchase_price", "notes", "sources"});
  return {.name = node["name"].as<std::string>(),
          .ports = static_cast<int>(node["ports"].integer(2, 4096)),
          .bandwidth = positive<Bandwidth>(node["bandwidth"]),
          .purchase_price = positive_if_any<Money>(node, "purchase_price")};
}

/// Default: by destination on InfiniBand and on shapes that are not trees, packet spraying
/// elsewhere.
void read_routing(const Node& node, ClusterFabric& fabric) {
  const auto given = node.find("routing");
  const bool by_destination = fabric.latency_class == "infiniband" || !is_tree(fabric.kind);
  fabric.routing = given            ? given->word(routing_words)
                   : by_destination ? Routing::d_mod_k
                                    : Routing::spray;
  if (given && (fabric.kind == FabricKind::torus || fabric.kind == FabricKind::mesh)) {
    given->fail("does not apply to a torus or mesh, which routes dimension by dimension");
  }
  if (fabric.kind == FabricKind::dragonfly && fabric.routing == Routing::spray) {
    given->fail(
        "expected \"d-mod-k\", \"ecmp\" or \"adaptive\" on a dragonfly: its cables "
        "between two groups leave from several routers, found \"spray\"");
  }
  const auto pxn = node.find("pxn");
  if (pxn && !has_rails(fabric.kind)) pxn->fail("pxn applies only to fabrics with rails");
  fabric.pxn = has_rails(fabric.kind) && node.value_or("pxn", true);
  if (pxn && fabric.kind == FabricKind::rail_only && !fabric.pxn) {
    pxn->fail("rail_only needs pxn, because its rails are not connected");
  }
}

}  // namespace

ClusterFabric read_fabric(const Node& node, NodeCounts counts) {
  node.only({"name",
             "kind",
             "levels",
             "oversubscription",
             "spines",
             "leaves_per_pod",
             "switch",
             "nodes_per_leaf",
             "routers_per_group",
             "global_cables",
             "dimensions",
             "cables",
             "routing",
             "pxn",
             "bandwidth",
             "latency_class",
             "latency",
             "class_latency",
             "hop_latency",
             "efficiency",
             "gather_efficiency",
             "network",
             "half_size",
             "half_size_growth",
             "growth",
             "ideal",
             "reduces",
             "notes",
             "sources"});
  ClusterFabric fabric;
  fabric.name = node.value_or<std::string>("name", "fabric");
  fabric.kind = node["kind"].word(fabric_kind_words);
  if (fabric.kind == FabricKind::none) return fabric;
  if (const auto rate = node.find("bandwidth")) fabric.bandwidth = positive<Bandwidth>(*rate);
  fabric.latency_class = node.value_or<std::string>("latency_class", "");
  fabric.latency = node["latency"].as<Time>();
  fabric.efficiency = share(node["efficiency"]);
  fabric.gather_efficiency = share(node["gather_efficiency"]);
  fabric.switch_reduces = node.value_or("reduces", false);
  if (const auto leaf = node.find("switch")) fabric.leaf = read_switch(*leaf);
  if (const auto hop = node.find("hop_latency")) fabric.hop_latency = hop->as<Time>();
  read_shape(node, counts, fabric);
  read_routing(node, fabric);
  fabric.longest_path = longest_path(fabric, counts);
  return fabric;
}

void read_network_constants(const Node& node, Cluster& cluster) {
  const ClusterFabric& fabric = cluster.fabric;
  if (fabric.kind == FabricKind::none) return;
  CollectiveConstants& constants = cluster.collectives;
  const Time wire = fabric.hop_latency ? *fabric.hop_latency * fabric.longest_path : fabric.latency;
  const Time moved = wire - node.value_or("class_latency", fabric.latency);
  constants.network = std::max(Time{}, node["network"].as<Time>() + moved);
  constants.half_size = node["half_size"].as<Time>();
  constants.half_size_growth = node["half_size_growth"].as<Time>();
  constants.growth = share(node["growth"]);
  constants.source += "; " + source_of(node.json(), "/network");
  if (!node.value_or("ideal", false)) return;
  constants.make_ideal();
  constants.ring_rate = cluster.node.scale_up_bandwidth;
}

}  // namespace orrery::hardware
