// NCCL's topology XML and tables of nvidia-smi: what is read is a node within limits, and prints.
#include "hardware/node_import/node_import.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  survives([&] {
    const hardware::ImportedNode node = hardware::imported_node(text_of(data, size), "fuzz.xml");
    if (node.shape.gpus < 1 || node.json.dump().empty()) std::abort();
    for (const hardware::NodeCable& each : node.shape.cables) {
      if (!(each.bandwidth.count() >= 0)) std::abort();
    }
    for (const auto& nics : node.shape.gpu_nics) {
      for (const int nic : nics) {
        if (nic < 0 || nic >= node.shape.nics) std::abort();
      }
    }
  });
  return 0;
}
