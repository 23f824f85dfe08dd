#pragma once
// Finds the catalogue entries of a GPU and its node by the name that the GPU's driver reports.

#include <optional>
#include <string>
#include <string_view>

#include "sim/quantity.hpp"

namespace orrery::hardware {

/// "NVIDIA H100 80GB HBM3" is h100-sxm-80gb: matches every word of the entry's model, then the form
/// factor (SXM if the name states none), then the nearest memory size. Nothing if the catalogue
/// lacks the GPU.
std::optional<std::string> recognised_gpu(std::string_view reported, Bytes memory);

/// A node type with this GPU; of several the vendor-neutral hgx, then the dgx. Nothing if there is
/// none.
std::optional<std::string> node_with(std::string_view gpu);

}  // namespace orrery::hardware
