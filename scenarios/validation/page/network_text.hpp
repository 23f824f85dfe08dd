#pragma once
// Parses descriptions of a node's network in published runs: "8x HDR InfiniBand 200Gb/s per node
// (Selene)", "1600 Gb/s per node RoCE", "RDMA 400 Gb/s per GPU".

#include <optional>
#include <string>
#include <string_view>

namespace orrery::scenarios {

/// The NICs of one node that carry training traffic.
struct NetworkText {
  int nics = 1;
  double gigabits = 0;        // of one NIC and direction, Gb/s
  std::string latency_class;  // "infiniband", "roce", "efa", "omni-path", "slingshot", "ethernet"
};

/// The largest n x rate of a text; management and storage ports are smaller. "per node" without a
/// count is spread over the node's GPUs, as such nodes are built; "per GPU" is one NIC each.
/// Nothing if the text states no rate or says that it is not known.
///   n x r "per node": n NICs of r        R "per node": one NIC of R / gpus for each GPU
///   r "per GPU": one NIC of r for each GPU
std::optional<NetworkText> read_network(std::string_view text, int gpus_per_node);

/// The latency class of the first known word in a text; empty if there is none.
std::string latency_class_of(std::string_view text);

}  // namespace orrery::scenarios
