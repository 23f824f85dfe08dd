#pragma once
// mxfp8 and nvfp4 operands of GEMMs on the CPU: they are decoded and then multiplied in fp32.

#include "executor/device/block_scales.hpp"
#include "executor/device/device.hpp"

namespace orrery::executor::cpu {

/// Encodes numbers of the shape of `codes`, and stores the scales of their blocks.
void quantise_blocks(const float* numbers, const View& codes, const View& scales, BlocksAlong way);
/// Decodes all elements.
void decode_blocks(const View& codes, const View& scales, BlocksAlong way, float* to);
/// Rounds numbers as if they had been encoded and decoded.
void round_to_blocks(float* numbers, const View& shaped, BlockFormat format, BlocksAlong way);

}  // namespace orrery::executor::cpu
