#include "scenarios/topology/topology_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "models/network/fabric/fabric_graph.hpp"
#include "models/network/fabric/node_graph.hpp"
#include "scenarios/report/style.hpp"
#include "scenarios/topology/bill.hpp"
#include "scenarios/topology/bisection.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

using models::FabricGraph;

constexpr std::size_t most_names = 20'000;

Json switches_of(const FabricBill& bill) {
  Json rows = Json::array();
  for (std::size_t first = 0, end = 0; first < bill.switches.size(); first = end) {
    const BillSwitch& one = bill.switches[first];
    double used = 0;
    std::size_t count = 0;
    std::string last;
    for (end = first; end < bill.switches.size() && bill.switches[end].kind == one.kind; ++end) {
      used = std::max(used, bill.switches[end].ports);
      last = bill.switches[end].name;
      ++count;
    }
    rows.push_back({{"kind", one.kind},
                    {"count", count},
                    {"first", one.name},
                    {"last", last},
                    {"ports", bill.radix > 0 ? Json(bill.radix) : Json{}},
                    {"most_ports_used", std::ceil(used)}});
  }
  return rows;
}

/// Cables by the kinds of their two ends and their rate, and how many pairs of ends these join.
Json cables_of(const FabricBill& bill) {
  using Row = std::tuple<std::string, std::string, double>;
  std::map<Row, std::pair<int, int>> counts;  // cables, pairs
  std::vector<Row> order;
  for (const BillCable& each : bill.cables) {
    const std::string from = each.nic ? "nic" : bill.switches[each.from].kind;
    const Row row{from, bill.switches[each.to].kind, each.rate.count()};
    auto& [cables, pairs] = counts[row];
    if (pairs++ == 0) order.push_back(row);
    cables += each.count;
  }
  Json rows = Json::array();
  for (const Row& row : order) {
    rows.push_back({{"from", std::get<0>(row)},
                    {"to", std::get<1>(row)},
                    {"count", counts[row].first},
                    {"pairs", counts[row].second},
                    {"bytes_per_s", std::get<2>(row)}});
  }
  return rows;
}

/// Path lengths in cables from the first node's first NIC to the same NIC of every other node.
Json paths_of(const FabricGraph& graph, const hardware::Cluster& cluster) {
  std::map<std::size_t, std::pair<std::size_t, std::size_t>> by_cables;  // nodes, the first one
  Route route;
  const std::vector<double> idle(graph.links(), 0);
  for (std::size_t node = 1; node < static_cast<std::size_t>(cluster.nodes); ++node) {
    graph.route({.from = 0, .to = graph.port(node, 0), .loads = idle}, route);
    auto& [count, first] = by_cables[route.size()];
    if (count++ == 0) first = node;
  }
  Json rows = Json::array();
  for (const auto& [cables, found] : by_cables) {
    rows.push_back({{"cables", cables},
                    {"latency_s", seconds(models::message_latency(cluster, cables))},
                    {"nodes", found.first},
                    {"from", "node0/nic0"},
                    {"to", fmt::format("node{}/nic0", found.second)}});
  }
  return rows;
}

Json names_of(const FabricGraph& graph) {
  if (graph.links() > most_names) return nullptr;
  Json names = Json::array();
  for (std::size_t l = 0; l < graph.links(); ++l) {
    names.push_back(graph.name(LinkId{static_cast<std::uint32_t>(l)}));
  }
  return names;
}

Json fabric_facts(const hardware::Cluster& cluster) {
  const FabricGraph graph{cluster};
  const FabricBill bill = bill_of(cluster);
  const auto cut = bisection(graph, static_cast<std::size_t>(cluster.nodes));
  const double half = cluster.node_bandwidth().count() * (cluster.nodes / 2);
  return {{"name", cluster.fabric.name},
          {"kind", word_of(hardware::fabric_kind_words, cluster.fabric.kind)},
          {"routing", routing_text(cluster.fabric)},
          {"pxn", hardware::has_rails(cluster.fabric.kind) ? Json(cluster.fabric.pxn) : Json{}},
          {"latency_class", cluster.fabric.latency_class},
          {"switches", switches_of(bill)},
          {"cables", cables_of(bill)},
          {"note", bill.note.empty() ? Json{} : Json(bill.note)},
          {"bisection_bytes_per_s", cut ? Json(cut->count()) : Json{}},
          {"half_of_nics_bytes_per_s", half},
          {"paths", paths_of(graph, cluster)},
          {"links", graph.links()},
          {"link_names", names_of(graph)}};
}

std::string rate_text(const Json& rate) {
  return format(Bandwidth{rate.get<double>()});
}

std::string fabric_text(const Json& fabric, bool colour) {
  const Json pxn = fabric["pxn"];
  std::string text =
      fmt::format("\nfabric {}: {}, {}{}\n", fabric["name"].get<std::string>(),
                  fabric["kind"].get<std::string>(), fabric["routing"].get<std::string>(),
                  pxn.is_null()     ? ""
                  : pxn.get<bool>() ? ", PXN"
                                    : ", no PXN");
  TextTable switches{{"<switches", "count", "ports used", "<first", "<last"}};
  for (const Json& row : fabric["switches"]) {
    const std::string used = fmt::format("{:.0f}", row["most_ports_used"].get<double>());
    switches.add({row["kind"], row["count"].dump(),
                  row["ports"].is_null() ? used : used + " of " + row["ports"].dump(), row["first"],
                  row["last"]});
  }
  TextTable cables{{"<cables", "count", "in trunks", "rate each way"}};
  for (const Json& row : fabric["cables"]) {
    cables.add({row["from"].get<std::string>() + " to " + row["to"].get<std::string>(),
                row["count"].dump(), row["from"] == "nic" ? "" : row["pairs"].dump(),
                rate_text(row["bytes_per_s"])});
  }
  TextTable paths{{"<paths", "cables", "latency", "nodes"}};
  for (const Json& row : fabric["paths"]) {
    paths.add({row["from"].get<std::string>() + " to " + row["to"].get<std::string>(),
               row["cables"].dump(), format(from_seconds(row["latency_s"].get<double>())),
               row["nodes"].dump()});
  }
  text += switches.text(colour) + "\n" + cables.text(colour) + "\n";
  if (!fabric["note"].is_null()) text += fabric["note"].get<std::string>() + "\n\n";
  if (!paths.empty()) text += paths.text(colour) + "\n";
  const Json& cut = fabric["bisection_bytes_per_s"];
  if (!cut.is_null()) {
    text += fmt::format("bisection {}: {:.3g} of what the NICs of half the nodes send\n",
                        rate_text(cut),
                        cut.get<double>() / fabric["half_of_nics_bytes_per_s"].get<double>());
  }
  const Json& names = fabric["link_names"];
  text += fmt::format("{} simulated links by name", fabric["links"].dump());
  if (!names.empty()) {
    text += fmt::format(", \"{}\" to \"{}\"; --json lists them", names.front().get<std::string>(),
                        names.back().get<std::string>());
  }
  return text + "\n";
}

std::string way_text(const Json& way) {
  std::string text;
  for (const Json& step : way) text += (text.empty() ? "" : ", ") + step.get<std::string>();
  return text;
}

/// Paths from the first GPU to the second, the last and its nearest NIC.
Json ways_of(const models::NodeGraph& graph, const hardware::NodeType& node) {
  Json rows = Json::array();
  std::vector<std::string> ends;
  if (node.gpus > 1) ends = {"gpu1", fmt::format("gpu{}", node.gpus - 1)};
  if (node.gpus == 2) ends.pop_back();
  if (node.nics > 0) ends.push_back(fmt::format("nic{}", models::nics_of(node, 0).front()));
  for (const std::string& end : ends) {
    const auto route = graph.route(*graph.named("gpu0"), *graph.named(end));
    Json way = Json::array();
    double least = 1e300;
    for (const LinkId link : route.value_or(Route{})) {
      const auto& step = graph.topology().links()[index(link)];
      way.push_back(graph.name(step.to));
      least = std::min(least, step.bandwidth.count());
    }
    rows.push_back({{"from", "gpu0"},
                    {"to", end},
                    {"way", route ? way : Json{}},
                    {"bytes_per_s", route ? Json(least) : Json{}}});
  }
  return rows;
}

}  // namespace

std::string routing_text(const hardware::ClusterFabric& fabric) {
  const bool one_way =
      fabric.kind == hardware::FabricKind::torus || fabric.kind == hardware::FabricKind::mesh;
  if (one_way) return "dimension by dimension";
  return std::string{word_of(hardware::routing_words, fabric.routing)};
}

Json node_facts(const hardware::NodeType& node) {
  const models::NodeGraph graph{node};
  Json nearest = Json::array(), cables = Json::array();
  for (int gpu = 0; gpu < node.gpus && node.nics > 0; ++gpu) {
    nearest.push_back(models::nics_of(node, gpu));
  }
  const auto& links = graph.topology().links();
  for (std::size_t l = 0; l < links.size(); l += 2) {  // two links per cable, one each way
    cables.push_back({{"from", graph.name(links[l].from)},
                      {"to", graph.name(links[l].to)},
                      {"bytes_per_s", links[l].bandwidth.count()}});
  }
  return {{"name", node.name},
          {"gpus", node.gpus},
          {"nics", node.nics},
          {"stated", graph.stated()},
          {"gpu_nics", nearest},
          {"cables", cables},
          {"paths", ways_of(graph, node)}};
}

Json topology_facts(const hardware::Cluster& cluster) {
  const bool networked = cluster.fabric.kind != hardware::FabricKind::none && cluster.node.nics > 0;
  return {{"cluster", cluster.name},
          {"nodes", cluster.nodes},
          {"gpus_per_node", cluster.node.gpus},
          {"nics_per_node", cluster.node.nics},
          {"nic_bandwidth_bytes_per_s", cluster.nic_bandwidth().count()},
          {"fabric", networked ? fabric_facts(cluster) : Json{}},
          {"node", node_facts(cluster.node)}};
}

std::string node_text(const Json& facts, bool colour) {
  std::string text =
      fmt::format("node {}: GPUs {}, NICs {}{}\n", facts["name"].get<std::string>(),
                  facts["gpus"].dump(), facts["nics"].dump(),
                  facts["stated"].get<bool>() ? "" : "; cables follow from its kind and counts");
  TextTable ways{{"<inside", "rate", "<by way of"}};
  for (const Json& row : facts["paths"]) {
    const bool joined = !row["way"].is_null();
    ways.add({row["from"].get<std::string>() + " to " + row["to"].get<std::string>(),
              joined ? rate_text(row["bytes_per_s"]) : "-",
              joined ? way_text(row["way"]) : "no link connects them"});
  }
  if (!ways.empty()) text += ways.text(colour);
  if (facts["gpu_nics"].empty()) return text;
  text += "nearest NICs of each GPU:";
  for (const Json& nics : facts["gpu_nics"]) text += " " + nics.dump();
  return text + "\n";
}

std::string topology_text(const Json& facts, bool colour) {
  std::string text = toned(
      fmt::format("{}: nodes {}, GPUs {}, NICs {} in all", facts["cluster"].get<std::string>(),
                  facts["nodes"].dump(),
                  facts["nodes"].get<std::int64_t>() * facts["gpus_per_node"].get<std::int64_t>(),
                  facts["nodes"].get<std::int64_t>() * facts["nics_per_node"].get<std::int64_t>()),
      Tone::bold, colour);
  text += "\n";
  if (!facts["fabric"].is_null()) text += fabric_text(facts["fabric"], colour);
  return text + "\n" + node_text(facts["node"], colour);
}

}  // namespace orrery::scenarios
