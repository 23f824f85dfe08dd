#pragma once
// The node's device as a GPU's file (hardware/catalogue/README.md) has it, with the curves that a
// campaign measured.

#include <optional>
#include <string>
#include <vector>

#include "calibrate/findings.hpp"

namespace orrery::calibrate {

/// The catalogue's name of the GPU that was measured; nothing: it has none, or it is a processor.
std::optional<std::string> catalogue_name(const Findings& findings);

/// The entry that the catalogue has of the GPU, else one made of the fastest product and copy.
/// devices  that share the machine's memory, where it is a processor
Json base_entry(const Findings& findings, int devices);

/// The base with what was found in place of its curves; each curve is added to `curves`.
Json gpu_entry(const Findings& findings, int devices, std::vector<FittedCurve>& curves);

/// "calibrated 2026-11-22 on NVIDIA H200; CUDA 13.0, ...; the machine".
std::string source_line(const Findings& findings);

/// The name of fused attention's curve in a GPU's file, and in the software profile next to it.
const char* attention_name(const executor::FusedAttention& of);

/// The fastest product.
FlopRate fastest(const std::vector<ProductPoint>& points);

}  // namespace orrery::calibrate
