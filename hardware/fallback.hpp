#pragma once
// Fallback curves for a GPU that was not measured: the shares of peak of one that was. The error is
// a few per cent within the same silicon and ten to twenty across generations, mostly too fast, so
// `fallback_notes` reports every fallback curve. Residuals and absolute rates have no fallback.

#include <vector>

#include "hardware/gpu.hpp"

namespace orrery::hardware {

/// Fills missing curves from `fallbacks`, in order; a curve without a source counts as missing. A
/// format that has a peak but no curve takes, in this order: a fallback's curve of the same format;
/// the GPU's own bf16, fp16 or fp32 curve (the GEMM alone reaches the same share in all of them,
/// fp8 on H100 and B200 included); a fallback's bf16 curve. `fallbacks` have only the curves of
/// their own files.
void fill_from_fallbacks(Gpu& gpu, const std::vector<Gpu>& fallbacks);

}  // namespace orrery::hardware
