#pragma once
// The common result of the readers, and its conversion to a node. Only hardware/node_import/
// includes this header.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/cluster/cluster.hpp"
#include "sim/input/document.hpp"

namespace orrery::hardware {

/// How far a GPU is from a NIC, as nvidia-smi and NCCL call it.
enum class Distance : std::uint8_t { one_switch, switches, host_bridge, numa_node, sockets };

/// Links that a cable is made of, where the file states how many and not how fast.
struct GpuLinks {
  std::size_t cable = 0;  // its place in NodeParts::cables
  int count = 0;
  bool xgmi = false;
};

struct NodeParts {
  int gpus = 0;
  int nics = 0;
  std::string gpu{};  // of the catalogue; empty: not known
  std::optional<ScaleUp> scale_up{};
  Bandwidth nic_bandwidth{};                       // 0: not known
  std::vector<std::vector<Distance>> distances{};  // of each GPU, to each NIC
  std::vector<NodeCable> cables{};
  std::vector<GpuLinks> gpu_links{};
  std::string source{};  // of all numbers: "NCCL topology XML", ...
  std::string cable_source{};
  std::vector<std::string> notes{};
  std::string gpu_note{};  // on what follows from the GPU; not one of `notes` once it is stated
};

/// The NICs assigned to each GPU, one or several of its nearest: GPUs with the same nearest NICs
/// divide them evenly, in order.
std::vector<std::vector<int>> nearest_nics(const NodeParts& parts);

/// Errors  no GPU, more GPUs or NICs than a node has: InputError of `name`
Json node_json(NodeParts parts, const std::string& name);

// The readers, one file each.
NodeParts read_nccl_xml(std::string_view text, const std::string& name);
NodeParts read_topology_matrix(std::string_view text, const std::string& name);
NodeParts read_rocm_tables(std::string_view text, const std::string& name);
/// Whether a text is what `rocm-smi --showtopo` prints.
bool is_rocm_tables(std::string_view text);

/// Words of a line, without terminal colour codes.
std::vector<std::string> cells_of(std::string_view line);
/// Whether a cell is a device of a kind, "GPU3" of "GPU".
bool is_device(const std::string& cell, std::string_view kind);

}  // namespace orrery::hardware
