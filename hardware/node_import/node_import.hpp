#pragma once
// Imports a node from what its machine reports: NCCL's topology XML (NCCL_TOPO_DUMP_FILE, or what a
// provider ships as NCCL_TOPO_FILE) and the table of `nvidia-smi topo -m`. Reads GPUs, NICs, which
// NIC is near which GPU, and the cables between them through PCIe switches and sockets. Leaves out
// limits of NVSwitches, CPU affinities, and NCCL's graph files, which say what NCCL chose. Limits:
// 1 MiB, 64 levels of XML, 576 GPUs, 1,024 NICs; no document types, so no entities.

#include <string>
#include <string_view>

#include "hardware/cluster.hpp"
#include "sim/input/document.hpp"

namespace orrery::hardware {

/// Whether a text is one of the two: it begins with a tag, or has a row of GPU0.
bool is_node_import(std::string_view text);

struct ImportedNode {
  Json json;       // as `/node` of a cluster has it: its `gpu` where the file says which (PCI
                   // device), each number with its source, notes on what the file leaves open
  NodeType shape;  // counts, cables and nearest NICs; without its GPU
};

/// Errors  neither format, a graph file, malformed rows or tags, no GPU: InputError
ImportedNode imported_node(std::string_view text, const std::string& name);

}  // namespace orrery::hardware
