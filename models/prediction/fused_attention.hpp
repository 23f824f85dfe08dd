#pragma once
// Is attention one fused kernel? Context parallelism on GPUs needs one; without, scores are kept,
// and a rank would need those of other ranks' keys. A CPU computes attention head by head, over any
// number of keys.

#include "hardware/gpu/generation.hpp"
#include "hardware/gpu/gpu.hpp"
#include "models/plan/precision_formats.hpp"
#include "models/software/software.hpp"

namespace orrery::models {

inline bool attends_over_context(const Software& software, const hardware::Gpu& gpu,
                                 Precision precision, AttentionKernel chosen) {
  const bool fused = hardware::bits(storage_dtype(precision)) == 16 &&
                     software.attention(gpu.generation.name, chosen) != "unfused";
  return fused || software.host.synchronous;
}

}  // namespace orrery::models
