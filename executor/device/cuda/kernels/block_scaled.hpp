#pragma once
// mxfp8 and nvfp4 in kernels: tensors quantised in blocks, and what they stand for in bf16.
//
// A code times its block's scale has 4 (mxfp8) or 6 (nvfp4) significant bits, so that bf16 holds it
// exactly; the scale of nvfp4's tensor stays out of it, as a factor of the product.

#include "executor/device/block_scales.hpp"
#include "executor/device/cuda/kernels/fp8_code.hpp"
#include "executor/device/cuda/stream.hpp"
#include "executor/device/device.hpp"

namespace orrery::executor::cuda {

struct InBlocks {
  View codes, scales;  // after the scales lies the tensor's own (fp8_operand.hpp)
};

/// Enqueues the codes of a bf16 tensor, and their scales; `magnitudes` are of nvfp4 alone.
void quantise_blocks(const View& from, const Magnitudes& magnitudes, BlocksAlong way,
                     const InBlocks& to, Stream stream);

/// Enqueues what codes stand for but for the tensor's scale, in bf16.
void decode_blocks(const InBlocks& from, BlocksAlong way, std::byte* to, Stream stream);

/// Enqueues the same of a bf16 tensor, as if it had been quantised. Its scales, and behind them the
/// tensor's, are left in `scales`, which has `rounding_bytes`.
void round_to_blocks(const View& from, BlockFormat format, BlocksAlong way, std::byte* scales,
                     std::byte* to, Stream stream);
std::int64_t rounding_bytes(const View& from, BlockFormat format, BlocksAlong way);
/// Where the tensor's scale lies there.
const float* rounded_scale(const View& from, BlockFormat format, BlocksAlong way,
                           const std::byte* scales);

}  // namespace orrery::executor::cuda
