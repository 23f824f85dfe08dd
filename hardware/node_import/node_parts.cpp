#include "hardware/node_import/node_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "hardware/catalogue.hpp"
#include "hardware/entries.hpp"
#include "hardware/gpu/generation.hpp"
#include "hardware/node_import/nccl_elements.hpp"
#include "hardware/node_import/node_import.hpp"
#include "sim/errors.hpp"
#include "sim/input/byte_order_mark.hpp"
#include "sim/input/text.hpp"

namespace orrery::hardware {

namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 20;
constexpr int most_node_gpus = 576;
constexpr int most_node_nics = 1024;

std::string rate_text(Bandwidth rate) {
  return fmt::format("{:g} GB/s", rate.count() / 1e9);
}

Json cables_json(const NodeParts& parts) {
  Json cables = Json::array();
  for (const NodeCable& cable : parts.cables) {
    cables.push_back(
        {{"ends", {cable.one, cable.other}}, {"bandwidth", rate_text(cable.bandwidth)}});
  }
  for (const GpuLinks& each : parts.gpu_links) {
    cables[each.cable]["links"] = {{"kind", each.xgmi ? "xgmi" : "nvlink"}, {"count", each.count}};
  }
  return cables;
}

const Generation& generation_of(const Json& gpu) {
  const bool named = gpu.is_object() && gpu.contains("generation") && gpu["generation"].is_string();
  const std::string name = named ? gpu["generation"].get<std::string>() : "other";
  return generation_named(find_entry(EntryKind::generation, name) ? name : "other");
}

/// Rate of one link between GPUs of this entry; nothing if it has none of that kind.
std::optional<Bandwidth> link_rate(const Json& gpu, bool xgmi) {
  const Generation& generation = generation_of(gpu);
  if (xgmi) {
    const bool amd = gpu.is_object() && gpu.value("vendor", Json{}) == "AMD";
    if (!amd) return std::nullopt;
    return xgmi_rate(generation.name == "cdna2" ? "gfx90a" : "gfx942");
  }
  if (generation.compute_capability == 0) return std::nullopt;
  return nvlink_rate(generation.compute_capability);
}

/// The GPU that the user states, and the rate of its links.
void set_gpu(NodeParts& parts, const std::string& gpu) {
  const Json entry = Catalogue::gpu(gpu);
  parts.gpu = gpu;
  for (const GpuLinks& each : parts.gpu_links) {
    const auto rate = link_rate(entry, each.xgmi);
    if (rate) parts.cables[each.cable].bandwidth = *rate * static_cast<double>(each.count);
  }
  parts.gpu_note.clear();
}

/// The part-th of `parts` equal parts of a list; if there are fewer elements than parts, parts
/// share an element.
std::vector<int> part_of(const std::vector<int>& all, std::size_t part, std::size_t parts) {
  if (all.size() < parts) return {all[part * all.size() / parts]};
  const std::size_t begin = part * all.size() / parts;
  const std::size_t end = (part + 1) * all.size() / parts;
  return {all.begin() + static_cast<std::ptrdiff_t>(begin),
          all.begin() + static_cast<std::ptrdiff_t>(end)};
}

}  // namespace

std::vector<std::vector<int>> nearest_nics(const NodeParts& parts) {
  std::vector<std::vector<int>> nearest;
  std::map<std::vector<int>, std::vector<std::size_t>> sharers;
  for (std::size_t gpu = 0; gpu < parts.distances.size(); ++gpu) {
    const auto& row = parts.distances[gpu];
    std::vector<int> nics;
    const auto least = std::ranges::min_element(row);
    for (std::size_t nic = 0; nic < row.size(); ++nic) {
      if (row[nic] == *least) nics.push_back(static_cast<int>(nic));
    }
    sharers[nics].push_back(gpu);
    nearest.push_back(std::move(nics));
  }
  for (const auto& [nics, gpus] : sharers) {
    if (nics.empty()) continue;
    for (std::size_t k = 0; k < gpus.size(); ++k) nearest[gpus[k]] = part_of(nics, k, gpus.size());
  }
  return nearest;
}

Json node_json(NodeParts parts, const std::string& name) {
  if (parts.gpus == 0) {
    throw InputError{
        name,
        "names no GPU; use a file that NCCL writes with NCCL_TOPO_DUMP_FILE, which lists them"};
  }
  if (parts.gpus > most_node_gpus || parts.nics > most_node_nics) {
    throw InputError{name, fmt::format("{} GPUs and {} NICs; a node has at most {} and {}",
                                       parts.gpus, parts.nics, most_node_gpus, most_node_nics)};
  }
  Json node{{"name", std::filesystem::path{name}.stem().string()}};
  if (!parts.gpu.empty()) node["gpu"] = parts.gpu;
  node["gpus"] = parts.gpus;
  if (parts.scale_up) node["scale_up"] = {{"kind", word_of(scale_up_words, *parts.scale_up)}};
  node["nics"] = parts.nics;
  Json sources{{"/gpus", parts.source}, {"/nics", parts.source}};
  if (parts.nics > 0 && parts.nic_bandwidth.count() > 0) {
    node["nic_bandwidth"] = rate_text(parts.nic_bandwidth);
    sources["/nic_bandwidth"] = parts.source;
  }
  if (parts.nics > 0) {
    node["gpu_nics"] = nearest_nics(parts);
    sources["/gpu_nics"] = parts.source;
  }
  if (!parts.cables.empty()) {
    node["cables"] = cables_json(parts);
    sources["/cables"] = parts.cable_source;
  }
  if (!parts.gpu_note.empty()) parts.notes.push_back(parts.gpu_note);
  if (!parts.notes.empty()) node["notes"] = fmt::format("{}", fmt::join(parts.notes, "; "));
  node["sources"] = std::move(sources);
  return node;
}

namespace {

NodeParts read_parts(std::string_view text, std::size_t first, const std::string& name) {
  if (text[first] == '<') return read_nccl_xml(text, name);
  return is_rocm_tables(text) ? read_rocm_tables(text, name) : read_topology_matrix(text, name);
}

ImportedNode read_import(std::string_view bytes, const std::string& name, const std::string& gpu) {
  const std::string_view text = without_byte_order_mark(bytes);
  if (text.size() > most_bytes) {
    throw InputError{name,
                     fmt::format("has {} bytes; at most {} are read", text.size(), most_bytes)};
  }
  require_text(text, name);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) throw InputError{name, "is empty"};
  NodeParts parts = read_parts(text, first, name);
  if (!gpu.empty()) set_gpu(parts, gpu);
  ImportedNode imported{node_json(parts, name), {}};
  imported.shape.name = imported.json["name"];
  imported.shape.gpus = parts.gpus;
  imported.shape.nics = parts.nics;
  imported.shape.scale_up = parts.scale_up.value_or(ScaleUp::none);
  imported.shape.nic_bandwidth = parts.nic_bandwidth;
  if (parts.nics > 0) imported.shape.gpu_nics = nearest_nics(parts);
  imported.shape.cables = parts.cables;
  return imported;
}

}  // namespace

bool is_node_import(std::string_view bytes) {
  const std::string_view text = without_byte_order_mark(bytes);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  if (text[first] == '{' || text[first] == '[') return false;  // JSON may name a GPU0
  return text[first] == '<' || text.find("GPU0") != std::string_view::npos;
}

void set_link_rates(Json& node, const Json& gpu) {
  const auto cables = node.find("cables");
  if (cables == node.end() || !cables->is_array()) return;
  for (Json& cable : *cables) {
    const bool counted = cable.is_object() && cable.contains("links") &&
                         cable["links"].is_object() && cable["links"].contains("count") &&
                         cable["links"]["count"].is_number_integer();
    if (!counted) continue;
    const Json links = cable["links"];
    cable.erase("links");
    const bool xgmi = links.contains("kind") && links["kind"] == "xgmi";
    const auto rate = link_rate(gpu, xgmi);
    if (rate) cable["bandwidth"] = rate_text(*rate * links["count"].get<double>());
  }
}

ImportedNode imported_node(std::string_view text, const std::string& name, const std::string& gpu) {
  try {
    return read_import(text, name, gpu);
  } catch (const InputError& error) {
    // A problem may quote the file: `printable` keeps it on one line.
    if (error.place().empty()) throw InputError{printable(error.what())};
    throw InputError{printable(error.place()), printable(error.problem())};
  }
}

}  // namespace orrery::hardware
