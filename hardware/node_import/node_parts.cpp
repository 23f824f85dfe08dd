#include "hardware/node_import/node_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "hardware/node_import/node_import.hpp"
#include "sim/errors.hpp"
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
  return cables;
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

Json node_json(const NodeParts& parts, const std::string& name) {
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
  if (!parts.notes.empty()) node["notes"] = fmt::format("{}", fmt::join(parts.notes, "; "));
  node["sources"] = std::move(sources);
  return node;
}

namespace {

ImportedNode read_import(std::string_view text, const std::string& name) {
  if (text.size() > most_bytes) {
    throw InputError{name,
                     fmt::format("has {} bytes; at most {} are read", text.size(), most_bytes)};
  }
  require_text(text, name);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) throw InputError{name, "is empty"};
  const NodeParts parts =
      text[first] == '<' ? read_nccl_xml(text, name) : read_topology_matrix(text, name);
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

bool is_node_import(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  if (text[first] == '{' || text[first] == '[') return false;  // JSON may name a GPU0
  return text[first] == '<' || text.find("GPU0") != std::string_view::npos;
}

ImportedNode imported_node(std::string_view text, const std::string& name) {
  try {
    return read_import(text, name);
  } catch (const InputError& error) {
    // A problem may quote the file: `printable` keeps it on one line.
    throw InputError{printable(error.place()), printable(error.problem())};
  }
}

}  // namespace orrery::hardware
