#pragma once
// Curves for a GPU that was not measured: the shares of peak of one that was. Within the same
// silicon this costs a few per cent, across generations ten to twenty, mostly too fast, so every
// fallback curve is reported by `borrowings`. Residuals and absolute rates have no fallback.

#include <vector>

#include "hardware/gpu.hpp"

namespace orrery::hardware {

/// What is missing is filled from `fallbacks` in order; a curve without a source is missing. A
/// format that has a peak but no curve takes, in this order: a fallback's curve of that very
/// format; the GPU's own bf16 or fp16 curve (the product alone reaches the same share in all of
/// them, fp8 on H100 and B200 included); a fallback's bf16 curve. Fallbacks are GPUs as their files
/// give them, without fallback curves of their own.
void fill_from_fallbacks(Gpu& gpu, const std::vector<Gpu>& fallbacks);

}  // namespace orrery::hardware
