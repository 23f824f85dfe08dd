#pragma once
// Products in mxfp8 and nvfp4 by the reference arithmetic, on every GPU: kernels write in bf16 what
// the operands stand for, exactly (block_scaled.hpp), and tensor cores multiply that in fp32 sums.
// Left out: the block-scaled products that Blackwell's tensor cores have themselves.

#include <array>
#include <cstddef>
#include <cstdint>

#include "executor/device/cuda/stream.hpp"
#include "executor/device/device.hpp"

namespace orrery::executor::cuda {

/// Does it read scales of blocks?
bool reads_blocks(const Kernel& product);

struct BlockOperands {
  View a, b;  // in bf16, shaped as they were
  /// On the GPU, what the product is multiplied by, what is there before, and the second operand
  /// alone; null: nothing, 1 or 0, nothing.
  const float* factors = nullptr;
};

/// Enqueues what makes them; they lie in `scratch`, on 16 bytes and of as many as
/// `block_product_scratch` says, and are good until it is used again.
BlockOperands block_operands(const Kernel& product, Stream stream, std::byte* scratch);
std::int64_t block_product_scratch(const Kernel& product);

/// The same product of these operands, in bf16.
class DecodedProduct {
 public:
  DecodedProduct(const Kernel& product, const BlockOperands& operands);
  DecodedProduct(const DecodedProduct&) = delete;
  DecodedProduct& operator=(const DecodedProduct&) = delete;

  const Kernel& kernel() const { return kernel_; }

 private:
  models::Operation operation_;
  std::array<View, 3> reads_;
  Kernel kernel_;
};

}  // namespace orrery::executor::cuda
