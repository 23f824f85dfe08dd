#include <fmt/format.h>

#include "hardware/catalogue.hpp"
#include "hardware/entries.hpp"
#include "hardware/sources.hpp"
#include "scenarios/command/show/catalogue_tables.hpp"
#include "scenarios/command/terminal/terminal.hpp"
#include "scenarios/exchange/sections.hpp"
#include "scenarios/report/style.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Every number with its source, and how many of them are unconfirmed.
Shown with_sources(const std::string& title, const Json& entry) {
  const Terminal shown = terminal();
  TextTable table{{"<number", "value", "<source"}};
  int unconfirmed = 0, count = 0;
  for (const hardware::SourcedNumber& each : hardware::sourced_numbers(entry)) {
    ++count;
    unconfirmed += each.source == hardware::unconfirmed_source ? 1 : 0;
    table.add({each.pointer, text_of(entry.at(Json::json_pointer{each.pointer})), each.source});
  }
  std::string text = toned(title, Tone::bold, shown.colour) + "\n" + table.text(shown.colour);
  text += fmt::format("{} numbers, {} unconfirmed\n", count, unconfirmed);
  return {text, entry};
}

std::string rate_or_dash(Bandwidth rate) {
  return rate.count() > 0 ? format(rate) : "-";
}

std::string peak(const hardware::Gpu& gpu, hardware::DType type) {
  const auto rate = gpu.peak(type);
  return rate ? fmt::format("{:.4g}", rate->count() / 1e12) : "-";
}

/// A cluster's JSON by name, by `NODE x COUNT` or from a file.
Json cluster_json(const std::string& name) {
  const Document flag = Document::from(name, "show clusters");
  return expanded(Section::cluster, flag.root(), "").json;
}

}  // namespace

Shown show_gpus(const std::optional<std::string>& name) {
  if (name) return with_sources(*name, hardware::Catalogue::gpu(*name));
  TextTable table{{"<gpu", "memory", "bandwidth", "link", "bf16", "fp8", "power", "unconfirmed"}};
  Json list = Json::array();
  for (const std::string& each : hardware::Catalogue::gpus()) {
    const hardware::Gpu gpu = hardware::named_gpu(each);
    table.add({each, format(gpu.memory), format(gpu.memory_bandwidth), rate_or_dash(gpu.scale_up),
               peak(gpu, hardware::DType::bf16), peak(gpu, hardware::DType::fp8),
               format(gpu.board_power), fmt::format("{}", gpu.unconfirmed)});
    list.push_back({{"name", each}, {"unconfirmed", gpu.unconfirmed}});
  }
  const std::string units = "bf16 and fp8: dense TFLOP/s; link: per direction\n";
  return {table.text(terminal().colour) + units, list};
}

Shown show_nodes(const std::optional<std::string>& name) {
  if (name) return with_sources(*name, hardware::Catalogue::node(*name));
  TextTable table{{"<node", "gpus", "<gpu", "scale-up", "nics", "each", "host"}};
  Json list = Json::array();
  for (const std::string& each : hardware::Catalogue::nodes()) {
    const hardware::Cluster cluster = hardware::named_cluster(each);
    const hardware::NodeType& node = cluster.node;
    table.add({each, fmt::format("{}", node.gpus), node.gpu.name,
               rate_or_dash(node.scale_up_bandwidth), fmt::format("{}", node.nics),
               rate_or_dash(cluster.nic_bandwidth()), format(node.host_power)});
    list.push_back({{"name", each}, {"gpu", node.gpu.name}, {"gpus", node.gpus}});
  }
  return {table.text(terminal().colour), list};
}

Shown show_clusters(const std::optional<std::string>& name) {
  if (name) return with_sources(*name, cluster_json(*name));
  TextTable table{{"<cluster", "nodes", "<node", "gpus", "<fabric", "nic"}};
  Json list = Json::array();
  for (const std::string& each : hardware::Catalogue::clusters()) {
    const hardware::Cluster cluster = hardware::named_cluster(each);
    table.add({each, fmt::format("{}", cluster.nodes), cluster.node.name,
               fmt::format("{}", cluster.gpus()), cluster.fabric.name,
               rate_or_dash(cluster.nic_bandwidth())});
    list.push_back({{"name", each}, {"gpus", cluster.gpus()}});
  }
  return {table.text(terminal().colour) + "and any NODE x COUNT, such as dgx-h100 x 64\n", list};
}

Shown show_sites(const std::optional<std::string>& name) {
  using hardware::EntryKind;
  if (name) {
    const Json* entry = hardware::find_entry(EntryKind::site, *name);
    if (!entry) throw InputError{hardware::unknown_entry(EntryKind::site, *name)};
    Shown shown = with_sources(*name, *entry);
    if (entry->contains("notes")) shown.text += (*entry)["notes"].get<std::string>() + "\n";
    return shown;
  }
  TextTable table{{"<site", "tensor", "network", "jitter", "step", "clock", "<"}};
  Json list = Json::array();
  for (const std::string& each : hardware::entry_names(EntryKind::site)) {
    const Json& entry = *hardware::find_entry(EntryKind::site, each);
    const hardware::Site site = hardware::read_site(Node{entry, each, ""});
    table.add({each, fmt::format("{:g}", site.tensor), fmt::format("{:g}", site.network),
               format(site.jitter), format(site.step), fmt::format("{:g}", site.clock),
               entry.value("notes", "")});
    list.push_back(entry);
  }
  const std::string legend =
      "tensor: exposed tensor-parallel time over the stack's; network: share of its rate for "
      "gradients and dispatches; jitter, step: added times; clock: relative GEMM rate\n";
  return {table.text(terminal().colour) + legend, list};
}

}  // namespace orrery::scenarios
