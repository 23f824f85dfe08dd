#pragma once
// Imports a node from what its machine reports: NCCL's topology XML (NCCL_TOPO_DUMP_FILE, or what a
// provider ships as NCCL_TOPO_FILE), the table of `nvidia-smi topo -m` and those of `rocm-smi
// --showtopo`. Reads GPUs, NICs, which NIC is near which GPU, and the cables between them through
// PCIe switches and sockets. Tables state how many links join two GPUs and not how fast they are:
// the rate follows from the GPU, once it is stated. Leaves out
// limits of NVSwitches, CPU affinities, and NCCL's graph files, which say what NCCL chose. Limits:
// 1 MiB, 64 levels of XML, 576 GPUs, 1,024 NICs; no document types, so no entities.

#include <string>
#include <string_view>

#include "hardware/cluster/cluster.hpp"
#include "sim/input/document.hpp"

namespace orrery::hardware {

/// Whether a text is one of them: it begins with a tag, or has a row of GPU0.
bool is_node_import(std::string_view text);

struct ImportedNode {
  Json json;       // as `/node` of a cluster has it: its `gpu` where the file says which (PCI
                   // device), each number with its source, notes on what the file leaves open
  NodeType shape;  // counts, cables and nearest NICs; without its GPU
};

/// gpu     the catalogue's name of the node's GPU, where the file does not say which; empty:
/// unknown Errors  no known format, a graph file, malformed rows or tags, no GPU, an unknown `gpu`:
///         InputError
ImportedNode imported_node(std::string_view text, const std::string& name,
                           const std::string& gpu = {});

/// Sets the bandwidth of the cables of an imported node that are given as a number of `links`, by
/// the generation of its GPU, and drops that number.
void set_link_rates(Json& node, const Json& gpu);

}  // namespace orrery::hardware
