#pragma once
// mxfp8 and nvfp4 on the GPU: encodes tensors in blocks, and decodes them to bf16.
//
// A code times its block's scale has 4 (mxfp8) or 6 (nvfp4) significant bits, so bf16 holds it
// exactly. The scale of nvfp4's tensor is left out; the caller multiplies the product by it.

#include "executor/device/block_scales.hpp"
#include "executor/device/cuda/kernels/fp8/fp8_code.hpp"
#include "executor/device/cuda/stream.hpp"
#include "executor/device/device.hpp"

namespace orrery::executor::cuda {

struct InBlocks {
  View codes, scales;  // the tensor's own scale follows them (fp8_operand.hpp)
};

/// Enqueues the encoding of a bf16 tensor to codes and scales; only nvfp4 needs `magnitudes`.
void quantise_blocks(const View& from, const Magnitudes& magnitudes, BlocksAlong way,
                     const InBlocks& to, Stream stream);

/// Enqueues the decoding to bf16, without the tensor's scale.
void decode_blocks(const InBlocks& from, BlocksAlong way, std::byte* to, Stream stream);

/// Enqueues the same for a bf16 tensor, as if it had been encoded first. Its block scales, followed
/// by the tensor's scale, are left in `scales`, which has `rounding_bytes`.
void round_to_blocks(const View& from, BlockFormat format, BlocksAlong way, std::byte* scales,
                     std::byte* to, Stream stream);
std::int64_t rounding_bytes(const View& from, BlockFormat format, BlocksAlong way);
/// Address of the tensor's scale in `scales`.
const float* rounded_scale(const View& from, BlockFormat format, BlocksAlong way,
                           const std::byte* scales);

}  // namespace orrery::executor::cuda
