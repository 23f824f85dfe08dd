// Finds the catalogue's machine for the descriptions in a measured collective's row.

#include <algorithm>
#include <array>
#include <string_view>

#include "hardware/catalogue.hpp"
#include "scenarios/fitting/collectives/measured_collective.hpp"
#include "scenarios/fitting/words.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

/// The usual node of a GPU, or of a GPU with certain links.
struct UsualNode {
  std::string_view gpu, network, node;  // network: a word of `link`
  std::string_view fabric, scale_up{};  // empty: the node's
};

constexpr std::array<UsualNode, 32> usual_nodes{{
    {"a100-sxm-80gb", "EFA", "p4de", ""},
    {"h100-sxm-80gb", "EFA", "p5", ""},
    {"h200-sxm-141gb", "EFA", "p5en", ""},
    {"b200-sxm", "EFA", "p6-b200", ""},
    {"h100-sxm-80gb", "TCPXO", "a3-mega", ""},  // must precede TCPX, a substring of it
    {"h100-sxm-80gb", "TCPX", "a3-high", ""},
    {"h200-sxm-141gb", "RoCE", "a3-ultra", ""},
    {"a100-sxm-40gb", "RoCE", "oci-bm-gpu4", ""},
    {"a100-sxm-40gb", "", "dgx-a100-40gb", ""},
    {"a100-sxm-80gb", "", "dgx-a100-80gb", ""},
    {"a100-pcie-80gb", "", "a100-pcie-8x", ""},
    {"h100-sxm-80gb", "", "dgx-h100", ""},
    {"h200-sxm-141gb", "", "dgx-h200", ""},
    {"b200-sxm", "", "dgx-b200", ""},
    {"b300-sxm", "", "dgx-b300", ""},
    {"gb200", "RoCE", "gb200-nvl72", "roce-fat-tree-2"},
    {"gb300", "RoCE", "gb300-nvl72", "roce-fat-tree-2"},
    {"gb200", "", "gb200-nvl72", ""},
    {"gb300", "", "gb300-nvl72", ""},
    {"gh200-96gb", "", "gh200-4x", ""},
    {"mi300x", "", "mi300x-8x", ""},
    {"mi325x", "", "mi325x-8x", ""},
    {"mi350x", "", "mi350x-8x", ""},
    {"mi355x", "", "mi355x-8x", ""},
    {"l40s", "", "l40s-8x", "", "pcie4-l40s"},
    {"rtx-pro-6000", "", "rtx-pro-6000-8x", ""},
    {"rtx-5090", "", "rtx-5090-8x", ""},
    {"rtx-4090", "no P2P", "rtx-4090-8x", ""},  // must precede P2P, a part of it
    {"rtx-4090", "P2P", "rtx-4090-8x", "", "pcie4"},
    {"a10g", "TCP", "g5-1x", ""},
    {"h100-pcie-80gb", "bridge", "h100-pcie-pair", ""},
    {"v100-sxm-16gb", "", "dgx-1-v100", ""},
}};

const UsualNode* usual_node_of(const MeasuredCollective& row) {
  for (const UsualNode& home : usual_nodes) {
    if (row.gpu == home.gpu && mentions(row.link, home.network)) return &home;
  }
  return nullptr;
}

}  // namespace

std::optional<hardware::Cluster> machine_of(const MeasuredCollective& row) {
  const UsualNode* home = usual_node_of(row);
  if (!home) return std::nullopt;
  Json json{{"node", {{"like", std::string{home->node}}}}, {"nodes", row.domains()}};
  if (!home->scale_up.empty()) json["node"]["scale_up"] = std::string{home->scale_up};
  json["fabric"] = hardware::Catalogue::node(home->node)["fabric"];
  if (!home->fabric.empty()) json["fabric"] = std::string{home->fabric};
  const Document document = Document::from(json, row.id);
  const Document expanded = Document::from(hardware::expand_cluster(document.root()), row.id);
  hardware::Cluster machine = hardware::read_cluster(expanded.root());
  if (row.gpus / std::min(row.domains(), row.gpus) > machine.node.gpus) return std::nullopt;
  return machine;
}

}  // namespace orrery::scenarios
