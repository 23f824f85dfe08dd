#include "scenarios/validation/runs/run_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "hardware/catalogue.hpp"
#include "hardware/cluster/recognise.hpp"
#include "hardware/entries.hpp"
#include "scenarios/validation/page/network_text.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::int64_t gpus_of_nvl72 = 72;

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

/// GB200 and GB300 have NVLink switches in racks of 72 alone; a tray has none.
/// Source  NVIDIA, GB200 NVL72 and GB300 NVL72 datasheets
bool is_rack(const MeasuredRun& run) {
  const bool in_trays = run.gpu == "gb200" || run.gpu == "gb300";
  return contains(run.intra_node, "NVL72") || (in_trays && contains(run.intra_node, "NVSWITCH"));
}

/// GPUs of one scale-up domain: they reach each other without the network.
int domain_of(const MeasuredRun& run, std::vector<std::string>& assumptions) {
  const std::int64_t gpus = *run.gpus;
  if (is_rack(run)) {
    std::int64_t domain = std::min(gpus, gpus_of_nvl72);
    while (gpus % domain != 0) --domain;
    return static_cast<int>(domain);
  }
  const std::int64_t per_node = run.gpus_per_node.value_or(std::min<std::int64_t>(gpus, 8));
  if (!run.gpus_per_node) {
    assumptions.push_back(fmt::format("/cluster/node/gpus: not stated; {} assumed", per_node));
  }
  if (gpus > per_node && gpus % per_node != 0) {
    throw InputError{fmt::format("{} GPUs are not a whole number of nodes of {}", gpus, per_node)};
  }
  return static_cast<int>(std::min(gpus, per_node));
}

/// GPUs per node as a publication counts them: in a rack, those of a tray.
int server_of(const MeasuredRun& run, int domain) {
  const std::int64_t stated = run.gpus_per_node.value_or(domain);
  return is_rack(run) && stated > 0 && domain % stated == 0 ? static_cast<int>(stated) : domain;
}

/// The catalogue's usual node for a GPU; empty if there is none.
std::string usual_node(const MeasuredRun& run, int domain) {
  struct CatalogueNode {
    std::string_view gpu, node, efa_node;
  };
  constexpr std::array<CatalogueNode, 19> nodes{{
      {"v100-sxm-16gb", "dgx-1-v100", ""},
      {"v100-sxm-32gb", "dgx-1-v100-32gb", ""},
      {"a100-sxm-40gb", "dgx-a100-40gb", "p4d"},
      {"a100-sxm-80gb", "hgx-a100-80gb", "p4de"},
      {"a100-pcie-80gb", "a100-pcie-8x", ""},
      {"h100-sxm-80gb", "hgx-h100", "p5"},
      {"h100-sxm-96gb-500w", "hgx-h100-96gb-500w", ""},
      {"h100-pcie-80gb", "h100-pcie-8x", ""},
      {"h200-sxm-141gb", "hgx-h200", "p5en"},
      {"h200-nvl-141gb", "h200-nvl-8x", ""},
      {"h800-sxm-80gb", "hgx-h800", ""},
      {"l40s", "l40s-8x", ""},
      {"mi250x", "mi250x-4x", ""},
      {"mi300x", "mi300x-8x", ""},
      {"b200-sxm", "hgx-b200", "p6-b200"},
      {"b300-sxm", "dgx-b300", "p6-b300"},
      {"gb200", "gb200-nvl72", ""},
      {"gb300", "gb300-nvl72", ""},
      {"gh200-96gb", "gh200-4x", ""},
  }};
  if (run.gpu == "v100-sxm-32gb" && domain > 8) return "dgx-2";
  const bool efa = latency_class_of(run.network) == "efa";
  for (const CatalogueNode& each : nodes) {
    if (each.gpu != run.gpu) continue;
    return std::string{efa && !each.efa_node.empty() ? each.efa_node : each.node};
  }
  return hardware::node_with(run.gpu).value_or("");
}

/// The links inside the node, if the run states others than its usual node has; empty: the usual
/// ones.
std::string scale_up_of(const MeasuredRun& run) {
  const std::string& text = run.intra_node;
  const bool volta = run.gpu.rfind("v100", 0) == 0;
  if (contains(text, "cube mesh")) return "nvlink2-mesh";
  if (contains(text, "4-way")) return "nvlink-bridge-quads";
  if (contains(text, "bridge")) return "nvlink-bridge-pairs";
  if (volta && contains(text, "NVSwitch")) return "nvlink2-switch";
  if (text == "PCIe") return run.gpu.rfind("h", 0) == 0 ? "pcie5" : "pcie4";
  return {};
}

std::string fabric_of(const NetworkText& network) {
  const std::string& kind = network.latency_class;
  if (kind == "efa") return network.gigabits > 200 ? "efa-v4" : "efa-v2";
  if (kind == "omni-path") return "omni-path-fat-tree-2";
  if (kind == "roce") return "roce-fat-tree-2";
  if (kind == "slingshot") return "slingshot";
  if (kind == "ethernet") return "ethernet";
  const double rate = network.gigabits;
  return rate > 400   ? "infiniband-xdr-fat-tree-2"
         : rate > 200 ? "infiniband-fat-tree-2"
         : rate > 100 ? "infiniband-hdr-fat-tree-2"
                      : "infiniband-edr-fat-tree-2";
}

/// Adds the run's network if it states one, else the usual node's, scaled to this domain.
void add_network(const MeasuredRun& run, int domain, const Json* usual, Json& node, Json& cluster,
                 std::vector<std::string>& assumptions) {
  const int server = server_of(run, domain);
  auto network = read_network(run.network, server);
  if (network) {
    network->nics *= domain / server;
    if (network->latency_class.empty()) {
      network->latency_class = "infiniband";
      assumptions.push_back("/cluster/fabric: not stated; infiniband assumed");
    }
    node["nics"] = network->nics;
    node["nic_bandwidth"] = fmt::format("{} Gb/s", network->gigabits);
    cluster["fabric"] = fabric_of(*network);
    return;
  }
  if (!usual) return;
  const auto nics = (*usual)["node"]["nics"].get<std::int64_t>();
  const auto gpus = (*usual)["node"]["gpus"].get<std::int64_t>();
  node["nics"] = std::max<std::int64_t>(1, nics * domain / gpus);
  const std::string stated = latency_class_of(run.network);
  if (stated == "roce") cluster["fabric"] = "roce-fat-tree-2";
  if (*run.gpus > domain) {
    assumptions.push_back(fmt::format("/cluster/fabric: rate not stated; {} assumed, as in {}",
                                      (*usual)["fabric"]["name"].get<std::string>(),
                                      (*usual)["node"]["name"].get<std::string>()));
  }
}

Json cluster_json(const MeasuredRun& run, int domain, std::vector<std::string>& assumptions) {
  const std::string usual = usual_node(run, domain);
  Json expanded;
  Json node;
  if (usual.empty()) {
    node = {{"name", run.gpu + " node"}, {"gpu", run.gpu}};
    assumptions.push_back(
        "/cluster/node: links inside the node not stated; the usual ones assumed");
  } else {
    expanded = hardware::Catalogue::cluster(usual);
    node = {{"like", usual}, {"name", usual}};
  }
  node["gpus"] = domain;
  const std::string scale_up = scale_up_of(run);
  if (!scale_up.empty()) node["scale_up"] = scale_up;
  Json cluster{{"name", run.gpu}, {"nodes", 1}};
  add_network(run, domain, usual.empty() ? nullptr : &expanded, node, cluster, assumptions);
  const bool replaces = !usual.empty() && node.contains("nic_bandwidth");
  if (replaces) node["nic"] = nullptr;  // the stated NICs replace the usual node's
  cluster["node"] = std::move(node);
  return cluster;
}

}  // namespace

hardware::Site site_named(const std::string& name) {
  const Json* const entry = hardware::find_entry(hardware::EntryKind::site, name);
  if (entry) return hardware::read_site(Document::from(*entry, name).root());
  hardware::Site neutral;
  neutral.name = name;
  return neutral;
}

hardware::Cluster RunClusters::of(const MeasuredRun& run, std::vector<std::string>& assumptions) {
  const int domain = domain_of(run, assumptions);
  const auto nodes = static_cast<int>(*run.gpus / domain);
  const std::string key =
      fmt::format("{}|{}|{}|{}|{}", run.gpu, domain, run.intra_node, run.network, nodes > 1);
  auto found = known_.find(key);
  if (found == known_.end()) {
    KnownCluster fresh;
    const Document given =
        Document::from(cluster_json(run, domain, fresh.assumptions), "cluster of " + run.run);
    const Document whole = Document::from(hardware::expand_cluster(given.root()), given.name());
    fresh.cluster = hardware::read_cluster(whole.root());
    found = known_.emplace(key, std::move(fresh)).first;
  }
  const KnownCluster& known = found->second;
  assumptions.insert(assumptions.end(), known.assumptions.begin(), known.assumptions.end());
  hardware::Cluster cluster = known.cluster;
  cluster.nodes = nodes;
  if (cluster.site.name.empty()) cluster.site = site_named(run.site);
  return cluster;
}

}  // namespace orrery::scenarios
