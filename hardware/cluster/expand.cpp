#include "hardware/cluster/expand.hpp"

#include <fmt/format.h>

#include <array>
#include <span>
#include <utility>

#include "hardware/catalogue.hpp"
#include "hardware/cluster/fabric_shape.hpp"
#include "hardware/gpu/generation.hpp"
#include "hardware/node_import/node_import.hpp"
#include "hardware/own_file.hpp"
#include "hardware/prices/rental.hpp"
#include "hardware/sources.hpp"

namespace orrery::hardware {

namespace {

/// The file that a node came from.
std::string file_of(const Node& node) {
  const std::string place = node.place();
  const std::string suffix = ":" + node.pointer();
  const bool nested = !node.pointer().empty() && place.size() > suffix.size() &&
                      place.compare(place.size() - suffix.size(), suffix.size(), suffix) == 0;
  return nested ? place.substr(0, place.size() - suffix.size()) : place;
}

/// Null counts as absent.
bool lacks(const Json& object, const std::string& key) {
  return !object.contains(key) || object[key].is_null();
}

void erase_member(Json& object, const std::string& key) {
  object.erase(key);
  if (object.contains("sources")) object["sources"].erase("/" + key);
}

/// Moves a member and its source from one object to another, unless it is there already.
void move_member(Json& from, const std::string& key, Json& to, const std::string& new_key) {
  if (lacks(from, key)) return;
  if (lacks(to, new_key)) {
    to[new_key] = from[key];
    const std::string source = source_of(from, "/" + key);
    if (!source.empty()) to["sources"]["/" + new_key] = source;
  }
  erase_member(from, key);
}

/// Moves `sources` to the end of an object, where it is easiest to read.
void sources_last(Json& object) {
  if (!object.contains("sources")) return;
  Json sources = object["sources"];
  object.erase("sources");
  object["sources"] = std::move(sources);
}

/// What a fabric takes from its latency class, where it does not state it.
constexpr std::array class_members{"latency", "efficiency", "gather_efficiency",
                                   "network", "half_size",  "half_size_growth",
                                   "growth",  "ideal"};

/// Copies from `entry` the members that `object` lacks, with their sources; true if any was copied.
bool fill_members(Json& object, const Json& entry, std::span<const char* const> keys) {
  bool filled = false;
  for (const char* key : keys) {
    if (!lacks(object, key) || lacks(entry, key)) continue;
    object[key] = entry[key];
    const std::string pointer = std::string{"/"} + key;
    const std::string source = source_of(entry, pointer);
    if (!source.empty()) object["sources"][pointer] = source;
    filled = true;
  }
  return filled;
}

/// The entry of a name, or the file at a path.
Json entry_named(const Node& name, EntryKind kind) {
  if (const auto own = own_file(name)) return resolved(own->root(), kind);
  const auto text = name.as<std::string>();
  const Json* entry = find_entry(kind, text);
  if (!entry) name.fail(unknown_entry(kind, text));
  Json copy = *entry;
  copy.erase("aliases");
  return copy;
}

/// Refuses a `sources` that is not a map of strings.
void check_sources(const Node& object) {
  const auto sources = object.find("sources");
  if (!sources) return;
  for (const auto& [pointer, source] : sources->members()) source.as<std::string>();
}

Json overridden(const Json& base, const Json& object, EntryKind kind) {
  Json result = base;
  if (kind == EntryKind::gpu && object.contains("name") && object["name"] != base["name"]) {
    for (const char* curves : {"gemm", "attention", "memory_bound", "published_shares"}) {
      result.erase(curves);
    }
    result["curves_from"] = base["name"];
  }
  if (kind == EntryKind::fabric && object.contains("kind")) {
    drop_other_shapes(result, object["kind"]);
  }
  result.merge_patch(object);
  result.erase("like");
  for (const SourcedNumber& number : sourced_numbers(object)) {
    set_source(result, number.pointer,
               number.source.empty() ? given_source : std::string_view{number.source});
  }
  return result;
}

/// Power of the rest of a server over that of its GPUs, where no other is known.
constexpr double usual_host_share = 0.8;
constexpr const char* host_share_source =
    "epoch-research/training-cost-trends cost_analysis_standalone.py: server power 1.8 times that "
    "of its GPUs";

void set_host_power(Json& node, Power power, std::string_view source) {
  node["host_power"] = fmt::format("{:.6g} W", power.count());
  set_source(node, "/host_power", source);
}

/// A node `like` one with another number of GPUs has as much of the host's power for each GPU. A
/// node that states none has the usual share of its GPUs' power.
void complete_host_power(const Node& node, const Json& gpu, Json& result, Json& assumptions) {
  if (node.has("host_power") || !result.contains("gpus") || !result["gpus"].is_number()) return;
  const auto gpus = result["gpus"].get<double>();
  const std::string file = file_of(node);
  if (!lacks(result, "host_power")) {
    const auto like = node.find("like");
    if (!like) return;
    const Json base = entry_named(*like, EntryKind::node);
    if (lacks(base, "gpus") || base["gpus"] == result["gpus"]) return;
    const auto whole = base["gpus"].get<double>();
    const Power power = Node{base, file, node.pointer()}["host_power"].as<Power>();
    set_host_power(result, power * (gpus / whole),
                   fmt::format("as much for each GPU as {:.0f} of them have", whole));
    assumptions.push_back(
        fmt::format("host_power not stated; {} assumed, as much for each of {:.0f} GPUs as in a "
                    "node of {:.0f}",
                    result["host_power"].get<std::string>(), gpus, whole));
    return;
  }
  if (lacks(gpu, "board_power")) return;
  const Node board{gpu, file, node.pointer() + "/gpu"};
  set_host_power(result, board["board_power"].as<Power>() * (usual_host_share * gpus),
                 host_share_source);
  assumptions.push_back(fmt::format("host_power not stated; {} assumed, {} times the GPUs' power",
                                    result["host_power"].get<std::string>(), usual_host_share));
}

/// The scale-up network whose constants are the fallback when a node gives none.
const std::string& usual_scale_up(const Json& gpu) {
  const bool named = gpu.contains("generation") && gpu["generation"].is_string();
  const std::string name = named ? gpu["generation"].get<std::string>() : "other";
  return generation_named(find_entry(EntryKind::generation, name) ? name : "other").scale_up;
}

/// Links of GPUs that have none of their own: slots of the host.
/// Source  PCI-SIG, PCI Express Base Specification 4.0: 31.5 GB/s of 16 lanes
constexpr const char* host_scale_up = "pcie4";
constexpr const char* host_slot = "31.5 GB/s";

/// Fills what a GPU in a few lines leaves out: its name, its generation, the formats of its peak,
/// the slot that it is in.
void complete_gpu(Json& gpu, Json& assumptions) {
  const auto take = [&](const char* key, const char* value, std::string_view sentence) {
    if (!lacks(gpu, key)) return;
    gpu[key] = value;
    if (!sentence.empty()) assumptions.push_back(sentence);
  };
  take("name", "custom", "");
  take("generation", "other", "generation of the GPU not stated; other assumed");
  const bool slotted = lacks(gpu, "scale_up");
  if (slotted) take("host_link", host_slot, "slot of the GPU not stated; PCIe 4.0 x16 assumed");
  if (!lacks(gpu, "dense_peak") && gpu["dense_peak"].is_string()) {
    const Json rate = gpu["dense_peak"];
    gpu["dense_peak"] = {{"bf16", rate}, {"fp16", rate}};
  }
}

/// Whether the usual links of a GPU's generation are its own, and it states none.
bool lacks_links(const Json& gpu) {
  const Json& kind = (*find_entry(EntryKind::scale_up, usual_scale_up(gpu)))["kind"];
  return lacks(gpu, "scale_up") && (kind == "nvswitch" || kind == "mesh" || kind == "xgmi");
}

Json expand_scale_up(const Node& node, const Json& gpu, Json& assumptions) {
  const auto given = node.find("scale_up");
  const std::string usual = !given && lacks_links(gpu) ? host_scale_up : usual_scale_up(gpu);
  const Json& fallback = *find_entry(EntryKind::scale_up, usual);
  if (!given) {
    assumptions.push_back(fmt::format("scale-up network not stated; {} assumed", usual));
    return fallback;
  }
  Json scale_up = resolved(*given, EntryKind::scale_up);
  if (!lacks(scale_up, "kind") && scale_up["kind"] == "none") return scale_up;
  bool filled = fill_members(scale_up, fallback, std::array{"base", "step", "ring_share"});
  if (!lacks(scale_up, "reduces") && scale_up["reduces"] == true) {
    filled |= fill_members(scale_up, fallback, std::array{"switch_share"});
  }
  if (filled) {
    assumptions.push_back(
        fmt::format("constants of the scale-up network not stated; those of {} assumed", usual));
  }
  return scale_up;
}

/// The fabric that the cluster names, else the node's usual one.
Json expand_fabric(const Node& cluster, const std::string& file, const Json& node,
                   Json& assumptions) {
  Json chosen;
  if (const auto given = cluster.find("fabric")) {
    chosen = given->json();
  } else if (!lacks(node, "fabric")) {
    chosen = node["fabric"];
  } else {
    const bool networked = !lacks(node, "nics") && node["nics"] != 0;
    chosen = networked ? "infiniband-fat-tree-2" : "none";
    assumptions.push_back(fmt::format("fabric not stated; {} assumed", chosen.get<std::string>()));
  }
  const std::string pointer = cluster.pointer() + "/fabric";
  Json fabric = resolved(Node{chosen, file, pointer}, EntryKind::fabric);
  if (!lacks(fabric, "kind") && fabric["kind"] == "none") return fabric;
  if (!lacks(fabric, "switch")) {
    fabric["switch"] =
        resolved(Node{fabric["switch"], file, pointer + "/switch"}, EntryKind::network_switch);
  }
  if (lacks(fabric, "latency_class")) {
    fabric["latency_class"] = "infiniband";
    assumptions.push_back("latency class of the fabric not stated; infiniband assumed");
  }
  Json latencies = entry_named(Node{fabric["latency_class"], file, pointer + "/latency_class"},
                               EntryKind::latency_class);
  fill_members(fabric, latencies, class_members);
  move_member(latencies, "latency", fabric, "class_latency");
  return fabric;
}

/// Sets the site: the one that the cluster names, else the one whose `found_by` matches the
/// cluster's GPU and latency class.
void put_site(const Node& cluster, const std::string& file, Json& result, Json& assumptions) {
  if (const auto given = cluster.find("site")) {
    result["site"] =
        resolved(Node{given->json(), file, cluster.pointer() + "/site"}, EntryKind::site);
    return;
  }
  const Json& fabric = result["fabric"];
  for (const std::string& name : entry_names(EntryKind::site)) {
    const Json& site = *find_entry(EntryKind::site, name);
    if (lacks(site, "found_by") || lacks(fabric, "latency_class")) continue;
    const Json& by = site["found_by"];
    if (by["gpu"] != result["node"]["gpu"]["name"] ||
        by["latency_class"] != fabric["latency_class"]) {
      continue;
    }
    result["site"] = site;
    assumptions.push_back(
        fmt::format("site not stated; {} assumed, as the GPUs are {} and the fabric is {}", name,
                    by["gpu"].get<std::string>(), by["latency_class"].get<std::string>()));
  }
}

/// The catalogue name of a node's type: the entry that it names, is `like`, or shares its name
/// with.
std::string type_of(const Node& node) {
  Json name = node.json();
  if (node.is_object()) name = node.json().value(node.has("like") ? "like" : "name", Json{});
  if (!name.is_string()) return {};
  const Json* entry = find_entry(EntryKind::node, name.get<std::string>());
  return entry ? (*entry)["name"].get<std::string>() : std::string{};
}

/// The type that offers name, if the node has that type's GPU: with another GPU no price is known.
std::string rented_type(const Node& written, const Json& expanded) {
  const std::string type = type_of(written);
  const Json* entry = find_entry(EntryKind::node, type);
  if (entry == nullptr || lacks(expanded["gpu"], "name")) return {};
  const Json* gpu = find_entry(EntryKind::gpu, (*entry)["gpu"].get<std::string>());
  return gpu != nullptr && (*gpu)["name"] == expanded["gpu"]["name"] ? type : std::string{};
}

}  // namespace

Json resolved(const Node& value, EntryKind kind) {
  if (value.is_string()) return entry_named(value, kind);
  if (!value.is_object()) value.fail_expected("a name or an object");
  check_sources(value);
  const auto like = value.find("like");
  if (like) return overridden(entry_named(*like, kind), value.json(), kind);
  Json copy = value.json();
  copy.erase("aliases");
  return copy;
}

std::string_view place_in_expanded(std::string_view pointer) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> moved{
      {{"/node/price_per_gpu_hour", "/price_per_gpu_hour"},
       {"/node/nic_bandwidth", "/fabric/bandwidth"},
       {"/node/fabric", "/fabric"}}};
  for (const auto& [from, to] : moved) {
    if (pointer == from) return to;
  }
  return pointer;
}

void drop_latency_class(Json& fabric) {
  if (!fabric.is_object() || lacks(fabric, "latency_class")) return;
  const Json& name = fabric["latency_class"];
  const Json* entry =
      name.is_string() ? find_entry(EntryKind::latency_class, name.get<std::string>()) : nullptr;
  if (entry == nullptr) return;
  for (const std::string key : class_members) {
    if (!lacks(fabric, key) && !lacks(*entry, key) && fabric[key] == (*entry)[key]) {
      erase_member(fabric, key);
    }
  }
  erase_member(fabric, "class_latency");
}

Json expand_node(const Node& node, Json& assumptions) {
  Json result = resolved(node, EntryKind::node);
  const std::string file = file_of(node);
  const Node whole{result, file, node.pointer()};
  Json gpu = resolved(whole["gpu"], EntryKind::gpu);
  complete_gpu(gpu, assumptions);
  if (lacks(result, "name")) result["name"] = "node of " + gpu["name"].get<std::string>();
  Json scale_up = expand_scale_up(whole, gpu, assumptions);
  if (const auto nic = whole.find("nic")) {
    Json card = resolved(*nic, EntryKind::nic);
    move_member(card, "bandwidth", result, "nic_bandwidth");
    result.erase("nic");
  }
  set_link_rates(result, gpu);
  if (node.is_object()) complete_host_power(node, gpu, result, assumptions);
  result["gpu"] = std::move(gpu);
  result["scale_up"] = std::move(scale_up);
  return result;
}

Json expand_cluster(const Node& cluster) {
  if (cluster.is_string()) {
    try {
      return Catalogue::cluster(cluster.as<std::string>());
    } catch (const InputError& error) {
      cluster.fail(error.what());
    }
  }
  Json result = resolved(cluster, EntryKind::cluster);
  const std::string file = file_of(cluster);
  const Node whole{result, file, cluster.pointer()};
  Json assumptions = Json::array();
  if (const auto earlier = whole.find("assumptions")) {
    for (const Node& sentence : earlier->elements()) assumptions.push_back(sentence.json());
  }
  Json node = expand_node(whole["node"], assumptions);
  Json fabric = expand_fabric(whole, file, node, assumptions);
  node.erase("fabric");
  move_member(node, "nic_bandwidth", fabric, "bandwidth");
  move_member(node, "price_per_gpu_hour", result, "price_per_gpu_hour");
  put_listed_price(result, rented_type(whole["node"], node), assumptions);
  sources_last(fabric);
  result["node"] = std::move(node);
  result["fabric"] = std::move(fabric);
  put_site(whole, file, result, assumptions);
  if (!assumptions.empty()) result["assumptions"] = std::move(assumptions);
  sources_last(result);
  return result;
}

}  // namespace orrery::hardware
