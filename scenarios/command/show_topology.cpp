// orrery show topology: a cluster's network, or the inside of a node from NCCL's topology XML or
// nvidia-smi, in words, as JSON and as pictures.

#include "scenarios/command/show_topology.hpp"

#include <fmt/format.h>

#include "hardware/catalogue.hpp"
#include "hardware/node_import/node_import.hpp"
#include "scenarios/command/terminal.hpp"
#include "scenarios/sections.hpp"
#include "scenarios/topology/layout.hpp"
#include "scenarios/topology/topology_facts.hpp"
#include "sim/input/text.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::scenarios {

namespace {

void write_pictures(const TopologyPictures& asked, const Picture& picture) {
  if (asked.svg) write_durably(*asked.svg, svg_of(picture));
  if (asked.html) write_durably(*asked.html, html_of(picture));
}

Shown show_import(const std::string& path, const std::string& text,
                  const TopologyPictures& pictures) {
  const hardware::ImportedNode node = hardware::imported_node(text, path);
  write_pictures(pictures, node_picture(node.shape, node.shape.name));
  Json facts = node_facts(node.shape);
  std::string words = node_text(facts, terminal().colour);
  if (node.json.contains("notes")) {
    words += "note: " + node.json["notes"].get<std::string>() + "\n";
  }
  words += fmt::format("as a cluster: {{\"node\": \"{}\", \"nodes\": 16}}\n", path);
  facts["json"] = node.json;
  return {words, {{"node", facts}}};
}

/// A cluster by name or from a file, or the one of a scenario's file.
hardware::Cluster cluster_named(const std::string& name) {
  Document flag = Document::from(name, "show topology");
  Json json;
  if (is_path(name)) {
    const Document file = Document::load(name);
    const bool scenario = file.json().is_object() && file.json().contains("cluster");
    const Node place = scenario ? file.root()["cluster"] : file.root();
    json = hardware::expand_cluster(place);
  } else {
    json = hardware::expand_cluster(flag.root());
  }
  return hardware::read_cluster(Document::from(std::move(json), name).root());
}

}  // namespace

Shown show_topology(const std::optional<std::string>& name, const TopologyPictures& pictures) {
  if (!name) {
    throw InputError{
        "show topology: expected a cluster (a name, 'NODE x COUNT' or a file), NCCL's topology XML "
        "or a table of nvidia-smi topo -m"};
  }
  constexpr std::size_t most_bytes = std::size_t{64} << 20;
  if (is_path(*name)) {
    const std::string text = read_file(*name, most_bytes);
    if (hardware::is_node_import(text)) return show_import(*name, text, pictures);
  }
  const hardware::Cluster cluster = cluster_named(*name);
  const bool networked = cluster.fabric.kind != hardware::FabricKind::none && cluster.node.nics > 0;
  const bool drawn = pictures.svg || pictures.html;
  if (drawn) {
    write_pictures(pictures, networked && cluster.nodes > 1
                                 ? fabric_picture(cluster)
                                 : node_picture(cluster.node, cluster.node.name));
  }
  const Json facts = topology_facts(cluster);
  return {topology_text(facts, terminal().colour), facts};
}

}  // namespace orrery::scenarios
