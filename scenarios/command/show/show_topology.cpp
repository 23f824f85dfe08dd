// orrery show topology: a cluster's network, or the inside of a node from NCCL's topology XML,
// nvidia-smi or rocm-smi, in words, as JSON and as pictures.

#include "scenarios/command/show/show_topology.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "hardware/catalogue.hpp"
#include "hardware/node_import/node_import.hpp"
#include "scenarios/command/terminal/terminal.hpp"
#include "scenarios/exchange/sections.hpp"
#include "scenarios/topology/layout.hpp"
#include "scenarios/topology/topology_facts.hpp"
#include "sim/input/byte_order_mark.hpp"
#include "sim/input/text.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::scenarios {

namespace {

void write_pictures(const TopologyPictures& asked, const Picture& picture) {
  if (asked.svg) write_durably(*asked.svg, svg_of(picture));
  if (asked.html) write_durably(*asked.html, html_of(picture));
}

/// A GPU that nodes of this kind have, for the example of a cluster.
std::string usual_gpu(const hardware::NodeType& node) {
  using hardware::ScaleUp;
  if (node.scale_up == ScaleUp::xgmi) return "mi300x";
  if (node.scale_up != ScaleUp::nvswitch && node.scale_up != ScaleUp::mesh) return "l40s";
  constexpr Bandwidth most_of_a100 = 300_GBps;
  const bool later = std::ranges::any_of(
      node.cables, [&](const hardware::NodeCable& each) { return each.bandwidth > most_of_a100; });
  return later ? "h100-sxm-80gb" : "a100-sxm-80gb";
}

/// `path` as a cluster's JSON takes it: a name without a slash would be one of the catalogue's.
std::string node_reference(const std::string& path) {
  const bool named = path.ends_with(".json") || path.ends_with(".xml");
  return named || path.find('/') != std::string::npos ? path : "./" + path;
}

/// The cluster of this node that the next command takes, and what of it the file does not state.
std::string cluster_hint(const std::string& path, const hardware::ImportedNode& node,
                         const std::optional<std::string>& gpu) {
  Json members{{"like", node_reference(path)}};
  std::string missing;
  const auto fill = [&](const char* key, const std::string& value) {
    members[key] = value;
    missing += (missing.empty() ? "" : ", ") + fmt::format("{} {}", key, value);
  };
  if (gpu) members["gpu"] = *gpu;
  if (!node.json.contains("gpu")) fill("gpu", usual_gpu(node.shape));
  if (node.shape.nics > 0 && node.shape.nic_bandwidth.count() <= 0) {
    fill("nic_bandwidth", "400 Gb/s");
  }
  const Json cluster{{"node", members.size() == 1 ? members["like"] : members},
                     {"nodes", node.shape.nics > 0 ? 16 : 1}};
  std::string text = fmt::format("as a cluster: --cluster '{}'\n", cluster.dump());
  if (!missing.empty()) {
    text += fmt::format("  the file does not state {}: write the node's own in place of these\n",
                        missing);
  }
  return text;
}

Shown show_import(const std::string& path, const std::string& text,
                  const TopologyPictures& pictures, const std::optional<std::string>& gpu) {
  const hardware::ImportedNode node = hardware::imported_node(text, path, gpu.value_or(""));
  write_pictures(pictures, node_picture(node.shape, node.shape.name));
  Json facts = node_facts(node.shape);
  std::string words = node_text(facts, terminal().colour);
  if (node.json.contains("notes")) {
    words += "note: " + node.json["notes"].get<std::string>() + "\n";
  }
  words += cluster_hint(path, node, gpu);
  facts["json"] = node.json;
  return {words, {{"node", facts}}};
}

/// A cluster by name or as JSON, of its own or the one of a scenario.
hardware::Cluster cluster_of(Document document) {
  const bool scenario = document.json().is_object() && document.json().contains("cluster");
  Json json = hardware::expand_cluster(scenario ? document.root()["cluster"] : document.root());
  return hardware::read_cluster(Document::from(std::move(json), document.name()).root());
}

/// A cluster's or scenario's file.
/// Errors  text that is neither: InputError
hardware::Cluster cluster_in(const std::string& text, const std::string& path) {
  const std::string_view content = trimmed(without_byte_order_mark(text));
  const bool json = content.empty() || content.front() == '{' || content.front() == '[';
  if (json) return cluster_of(Document::parse(text, path));
  require_text(content, path);
  throw InputError{
      path,
      "is neither a cluster nor a topology; expected a cluster or scenario in JSON, "
      "NCCL's topology XML, or the output of nvidia-smi topo -m or rocm-smi --showtopo"};
}

}  // namespace

Shown show_topology(const std::optional<std::string>& name, const TopologyPictures& pictures,
                    const std::optional<std::string>& gpu) {
  if (!name) {
    throw InputError{
        "show topology: expected a cluster (a name, 'NODE x COUNT' or a file), NCCL's topology XML "
        "or the output of nvidia-smi topo -m or rocm-smi --showtopo"};
  }
  constexpr std::size_t most_bytes = std::size_t{64} << 20;
  const bool object = name->starts_with('{');
  const bool file = !object && is_path(*name);
  const std::string text = file ? read_file(*name, most_bytes) : "";
  if (file && hardware::is_node_import(text)) return show_import(*name, text, pictures, gpu);
  if (gpu) throw InputError{"--gpu", "is for the file of a node; a cluster states its GPU"};
  const hardware::Cluster cluster = file     ? cluster_in(text, *name)
                                    : object ? cluster_of(Document::parse(*name, "show topology"))
                                             : cluster_of(Document::from(*name, "show topology"));
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
