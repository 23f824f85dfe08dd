#pragma once
// Which entries of the catalogue a GPU that reports itself is, by what its driver calls it.

#include <optional>
#include <string>
#include <string_view>

#include "sim/quantity.hpp"

namespace orrery::hardware {

/// "NVIDIA H100 80GB HBM3" is h100-sxm-80gb: every word of the entry's model, then the form (a card
/// that names none is an SXM module), then the nearest memory. Nothing: the catalogue lacks it.
std::optional<std::string> recognised_gpu(std::string_view reported, Bytes memory);

/// A node type that has this GPU, of several the vendor-neutral hgx, then the dgx. Nothing: none.
std::optional<std::string> node_with(std::string_view gpu);

}  // namespace orrery::hardware
