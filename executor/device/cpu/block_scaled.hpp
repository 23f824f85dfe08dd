#pragma once
// Operands of products in mxfp8 and nvfp4 on the processor, which multiplies what they mean in
// fp32.

#include "executor/device/block_scales.hpp"
#include "executor/device/device.hpp"

namespace orrery::executor::cpu {

/// Stores [rows, columns] numbers, and the scales of their blocks.
void quantise_blocks(const float* numbers, const View& codes, const View& scales, BlocksAlong way);
/// What is stored.
void decode_blocks(const View& codes, const View& scales, BlocksAlong way, float* to);
/// As if they had been stored and decoded.
void round_to_blocks(float* numbers, const View& shaped, BlockFormat format, BlocksAlong way);

}  // namespace orrery::executor::cpu
