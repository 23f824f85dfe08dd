#pragma once
// GEMMs in mxfp8 and nvfp4 by reference arithmetic, on every GPU: kernels decode the operands to
// bf16, exactly (block_scaled.hpp), and tensor cores multiply those with sums in fp32. Leaves out
// the block-scaled instructions of Blackwell's tensor cores.

#include <array>
#include <cstddef>
#include <cstdint>

#include "executor/device/cuda/stream.hpp"
#include "executor/device/device.hpp"

namespace orrery::executor::cuda {

/// Does the product read block scales?
bool reads_blocks(const Kernel& product);

struct BlockOperands {
  View a, b;  // decoded to bf16, shapes unchanged
  /// Three factors on the GPU: of the product, of what is in c before, and of the second operand
  /// alone (for the gradient of a bias). Null: 1; 1 or 0; 1.
  const float* factors = nullptr;
};

/// Enqueues the decoding. The operands are in `scratch`, which is aligned to 16 bytes and has
/// `block_product_scratch` bytes; they are valid until it is used again.
BlockOperands block_operands(const Kernel& product, Stream stream, std::byte* scratch);
std::int64_t block_product_scratch(const Kernel& product);

/// The same product as a bf16 kernel on the decoded operands.
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
