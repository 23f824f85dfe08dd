#pragma once
// Makes the GPU entry (hardware/catalogue/README.md) of the node's device, with the curves that a
// campaign measured.

#include <optional>
#include <string>
#include <vector>

#include "calibrate/findings.hpp"

namespace orrery::calibrate {

/// The catalogue's name of the GPU that was measured; nothing if it has none, or for a processor.
std::optional<std::string> catalogue_name(const Findings& findings);

/// The catalogue's entry of the GPU, else one made of the fastest GEMM and copy.
/// devices  number that share the memory of a processor
Json base_entry(const Findings& findings, int devices);

/// The base entry with measured curves in place of its own; each curve is added to `curves`.
Json gpu_entry(const Findings& findings, int devices, std::vector<FittedCurve>& curves);

/// "calibrated 2026-11-22 on NVIDIA H200; CUDA 13.0, ...; the machine".
std::string source_line(const Findings& findings);

/// The name of fused attention's curve in a GPU's file, and in the software profile next to it.
const char* attention_name(const executor::FusedAttention& of);

/// The rate of the fastest GEMM.
FlopRate fastest(const std::vector<ProductPoint>& points);

}  // namespace orrery::calibrate
