#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hardware/catalogue.hpp"
#include "hardware/cluster/fabric_shape.hpp"
#include "hardware/cluster/read_fabric.hpp"
#include "hardware/gpu/power_limit.hpp"
#include "hardware/reading.hpp"
#include "hardware/sources.hpp"

namespace orrery::hardware {

namespace {

constexpr int most_gpus_per_node = 576;  // an NVLink 5 domain at its largest

/// Rates of groups: absolute, or as a share of the link's bandwidth.
std::vector<GroupRate> read_group_rates(const Node& rates, Bandwidth link) {
  std::vector<GroupRate> read;
  for (const Node& rate : rates.elements()) {
    rate.only({"ranks", "ring", "ring_share", "low_latency"});
    const auto ranks = static_cast<int>(rate["ranks"].integer(2, most_gpus_per_node));
    if (!read.empty() && ranks <= read.back().ranks) rate.fail("ranks must increase");
    const auto part = rate.find("ring_share");
    if (part && rate.has("ring")) part->fail("stated twice: ring is the rate, too");
    read.push_back({.ranks = ranks,
                    .ring = part ? link * share(*part) : positive<Bandwidth>(rate["ring"]),
                    .low_latency = rate.value_or("low_latency", Bandwidth{})});
  }
  return read;
}

/// Bandwidth inside the node: given, or the GPU's own link (PCIe: that to the host).
Bandwidth domain_bandwidth(const Node& scale_up, ScaleUp kind, const Gpu& gpu) {
  if (const auto given = scale_up.find("bandwidth")) return positive<Bandwidth>(*given);
  const Bandwidth link = kind == ScaleUp::pcie ? gpu.host_link : gpu.scale_up;
  if (kind != ScaleUp::none && link.count() <= 0) {
    scale_up.fail(fmt::format("bandwidth is missing, and {} does not state it", gpu.name));
  }
  return kind == ScaleUp::none ? Bandwidth{} : link;
}

void read_scale_up(const Node& scale_up, NodeType& node, CollectiveConstants& constants) {
  scale_up.only({"name", "kind", "reduces", "bandwidth", "base", "step", "ring_share",
                 "switch_share", "group_rates", "notes", "sources"});
  node.scale_up = scale_up["kind"].word(scale_up_words);
  node.scale_up_bandwidth = domain_bandwidth(scale_up, node.scale_up, node.gpu);
  node.switch_reduces = scale_up.value_or("reduces", false);
  if (node.gpus > 1 && node.scale_up == ScaleUp::none) {
    scale_up["kind"].fail("a node of several GPUs needs a scale-up network");
  }
  constants.base = scale_up.value_or("base", Time{});
  constants.step = scale_up.value_or("step", Time{});
  if (const auto ring = scale_up.find("ring_share")) {
    constants.ring_rate = node.scale_up_bandwidth * share(*ring);
  }
  if (const auto rates = scale_up.find("group_rates")) {
    constants.group_rates = read_group_rates(*rates, node.scale_up_bandwidth);
  }
  if (node.switch_reduces) {
    constants.switch_rate = node.scale_up_bandwidth * share(scale_up["switch_share"]);
  }
  constants.source = source_of(scale_up.json(), "/base");
}

/// The nearest NICs of each GPU.
std::vector<std::vector<int>> read_gpu_nics(const Node& rows, const NodeType& type) {
  std::vector<std::vector<int>> read;
  for (const Node& row : rows.elements()) {
    std::vector<int> nics;
    for (const Node& nic : row.elements()) {
      nics.push_back(static_cast<int>(nic.integer(0, type.nics - 1)));
    }
    if (nics.empty()) row.fail("expected at least one NIC for each GPU");
    read.push_back(std::move(nics));
  }
  if (static_cast<int>(read.size()) != type.gpus) {
    rows.fail(fmt::format("expected a list of NICs for each of {} GPUs, found {}", type.gpus,
                          read.size()));
  }
  return read;
}

/// "gpu3" and "nic3" must exist in the node; any other name is a switch or a socket.
void check_end(const Node& end, const NodeType& type) {
  const auto name = end.as<std::string>();
  for (const auto& [kind, count] : {std::pair{"gpu", type.gpus}, std::pair{"nic", type.nics}}) {
    const bool numbered =
        name.size() > 3 && name.rfind(kind, 0) == 0 &&
        std::all_of(name.begin() + 3, name.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (numbered && (name.size() > 8 || std::stoi(name.substr(3)) >= count)) {
      end.fail(fmt::format("the node has {} of these, found {}", count, name));
    }
  }
  if (name.empty() || name.size() > 64) end.fail_expected("a name of at most 64 characters");
}

std::vector<NodeCable> read_cables(const Node& cables, const NodeType& type) {
  constexpr std::size_t most_cables = 65536;
  std::vector<NodeCable> read;
  for (const Node& cable : cables.elements()) {
    cable.only({"ends", "bandwidth"});
    const auto ends = cable["ends"].elements();
    if (ends.size() != 2) cable["ends"].fail_expected("the names of two ends");
    for (const Node& end : ends) check_end(end, type);
    read.push_back({ends[0].as<std::string>(), ends[1].as<std::string>(),
                    positive<Bandwidth>(cable["bandwidth"])});
    if (read.back().one == read.back().other)
      cable["ends"].fail("a cable must have two different ends");
    if (read.size() > most_cables) cables.fail(fmt::format("more than {} cables", most_cables));
  }
  return read;
}

/// Rate of a PCIe slot per direction.
///   rate = lanes * r * 128 / 130 / 8 bits,  r = 8, 16, 32 GT/s a lane of generation 3, 4, 5
/// Source  PCI-SIG, PCI Express Base Specification 5.0
Bandwidth slot_rate(const Node& slot) {
  slot.only({"generation", "lanes"});
  const auto generation = slot["generation"].integer(3, 5);
  const auto lanes = slot.integer_or("lanes", 1, 16, 16);
  return Bandwidth{static_cast<double>(lanes) * std::ldexp(1e9, static_cast<int>(generation)) *
                   128 / 130 / 8};
}

NodeType read_node(const Node& node, CollectiveConstants& constants) {
  node.only({"name", "gpu", "gpus", "scale_up", "nics", "nic_bandwidth", "gpu_nics", "cables",
             "host_power", "host_memory", "host_memory_bandwidth", "host_adam", "pcie",
             "purchase_price", "notes", "sources"});
  NodeType type;
  type.name = node["name"].as<std::string>();
  type.gpu = read_gpu(node["gpu"]);
  if (const auto slot = node.find("pcie")) type.gpu.host_link = slot_rate(*slot);
  type.gpus = static_cast<int>(node["gpus"].integer(1, most_gpus_per_node));
  read_scale_up(node["scale_up"], type, constants);
  type.nics = static_cast<int>(node.integer_or("nics", 0, 1024, 0));
  if (const auto rate = node.find("nic_bandwidth")) type.nic_bandwidth = positive<Bandwidth>(*rate);
  if (const auto rows = node.find("gpu_nics")) type.gpu_nics = read_gpu_nics(*rows, type);
  if (const auto cables = node.find("cables")) type.cables = read_cables(*cables, type);
  type.host_power = node.value_or("host_power", Power{});
  type.host_memory = positive_if_any<Bytes>(node, "host_memory");
  type.host_memory_bandwidth = positive_if_any<Bandwidth>(node, "host_memory_bandwidth");
  type.host_adam = positive_if_any<Bandwidth>(node, "host_adam");
  type.purchase_price = positive_if_any<Money>(node, "purchase_price");
  return type;
}

Storage read_storage(const Node& node) {
  node.only({"read", "write", "capacity", "random_read", "notes", "sources"});
  positive_if_any<Time>(node, "random_read");  // of a step's data, which is read elsewhere
  return {.read = positive_if_any<Bandwidth>(node, "read"),
          .write = positive_if_any<Bandwidth>(node, "write"),
          .capacity = positive_if_any<Bytes>(node, "capacity")};
}

/// Rates of decoding are read where a step's data is; here only their form.
void check_decoding(const Node& list) {
  std::vector<std::string> formats;
  for (const Node& each : list.elements()) {
    each.only({"format", "per_core", "pixels", "source"});
    const auto format = each["format"].as<std::string>();
    if (std::ranges::find(formats, format) != formats.end()) {
      each["format"].fail("'" + format + "' is stated twice");
    }
    formats.push_back(format);
    within(each["per_core"], 1e-6, 1e12);
    if (const auto pixels = each.find("pixels")) within(*pixels, 1, 1e12);
  }
}

void check_reach(const Node& node, const Cluster& cluster) {
  if (cluster.gpus() > most_gpus) {
    node["nodes"].fail(fmt::format("{} nodes of {} GPUs are more than 2^20 GPUs", cluster.nodes,
                                   cluster.node.gpus));
  }
  const bool linked = cluster.fabric.kind != FabricKind::none && cluster.node.nics > 0;
  if (cluster.nodes > 1 && !linked)
    node["nodes"].fail("a cluster of several nodes needs NICs and a fabric");
  if (linked && cluster.nic_bandwidth().count() <= 0) {
    node["fabric"].fail("bandwidth of a NIC is missing");
  }
  if (node["node"].has("nic_bandwidth") && node["fabric"].has("bandwidth")) {
    node["node"]["nic_bandwidth"].fail("stated twice: /fabric/bandwidth is the rate of a NIC, too");
  }
}

/// Adds the fallback curves that every simulation of this GPU uses to the assumptions. Of a GPU
/// without GEMM curves one sentence says it; those that a simulation uses are noted with its
/// prices. Adds what is not known of its power, too.
void report_fallbacks(const Node& stated, Cluster& cluster) {
  const Gpu& gpu = cluster.gpu();
  for (const std::string& sentence : {gpu.unmeasured, power_limit_note(gpu)}) {
    if (!sentence.empty()) cluster.assumptions.push_back(sentence);
  }
  const bool own_attention = std::ranges::any_of(
      gpu.attention, [](const auto& kernel) { return kernel.second.origin.fallback_from.empty(); });
  if (gpu.board_power.count() <= 0) {
    cluster.assumptions.push_back(
        fmt::format("board_power of {} not stated; its energy is not counted", gpu.name));
  }
  if (gpu.power_limit * 2.0 < gpu.board_power && !stated.has("least_power_limit")) {
    cluster.assumptions.push_back(
        fmt::format("power limit of {} is under half of the board power of {}; the lowest that it "
                    "accepts is not known",
                    format(gpu.power_limit), gpu.name));
  }
  for (FallbackNote& each : fallback_notes(gpu)) {
    const bool of_another_kernel = own_attention && each.attention;
    const bool in_one_sentence = !gpu.unmeasured.empty() && !each.sustained;
    if (!each.of_this_gpu && !of_another_kernel && !in_one_sentence) {
      cluster.assumptions.push_back(std::move(each.sentence));
    }
  }
}

}  // namespace

Cluster read_cluster(const Node& node) {
  node.only({"name", "node", "nodes", "fabric", "price_per_gpu_hour", "measured_collectives",
             "storage", "decoding", "site", "software", "assumptions", "notes", "sources"});
  Cluster cluster;
  cluster.node = read_node(node["node"], cluster.collectives);
  cluster.nodes = static_cast<int>(node.integer_or("nodes", 1, most_gpus, 1));
  cluster.name =
      node.value_or<std::string>("name", fmt::format("{} x {}", cluster.node.name, cluster.nodes));
  cluster.fabric = read_fabric(node["fabric"], {cluster.nodes, cluster.node.nics});
  read_network_constants(node["fabric"], cluster);
  check_reach(node, cluster);
  if (const auto tables = node.find("measured_collectives")) {
    cluster.measured_collectives = read_collective_tables(*tables);
  }
  if (const auto site = node.find("site")) cluster.site = read_site(*site);
  if (const auto storage = node.find("storage")) cluster.storage = read_storage(*storage);
  if (const auto decoding = node.find("decoding")) check_decoding(*decoding);
  if (const auto price = node.find("price_per_gpu_hour")) {
    cluster.price_per_gpu_hour = positive<Price>(*price);
    cluster.price_source = source_of(node.json(), "/price_per_gpu_hour");
    if (cluster.price_source.empty()) cluster.price_source = given_source;
  }
  if (const auto given = node.find("assumptions")) {
    for (const Node& sentence : given->elements()) {
      cluster.assumptions.push_back(sentence.as<std::string>());
    }
  }
  const NodeCounts counts{cluster.nodes, cluster.node.nics};
  if (const auto assumed = assumed_shape(node["fabric"], counts, cluster.fabric);
      !assumed.empty()) {
    cluster.assumptions.push_back("fabric: " + assumed);
  }
  report_fallbacks(node["node"]["gpu"], cluster);
  cluster.unconfirmed = count_unconfirmed(node.json());
  return cluster;
}

}  // namespace orrery::hardware
