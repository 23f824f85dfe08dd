#pragma once
// A GPU's file with the curves that a campaign measured in place of its own.

#include <string>
#include <vector>

#include "calibrate/gpu/gpu_findings.hpp"

namespace orrery::calibrate {

/// `base` (hardware/catalogue/README.md) with what was found; a card for each curve goes to
/// `cards`.
Json measured_gpu(const GpuFindings& findings, Json base, std::vector<CurveCard>& cards);

/// "calibrated 2026-11-22 on NVIDIA H200; CUDA 13.0, ...; the machine".
std::string gpu_source(const GpuFindings& findings);

/// The name of fused attention's curve in a GPU's file, and in the software profile beside it.
const char* attention_name(const executor::FusedAttention& of);

/// The fastest product of a format: a peak for GPUs that the catalogue lacks.
FlopRate fastest(const std::vector<ProductPoint>& points);

}  // namespace orrery::calibrate
