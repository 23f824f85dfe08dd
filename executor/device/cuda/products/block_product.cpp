#include "executor/device/cuda/products/block_product.hpp"

#include "executor/device/low_precision.hpp"

namespace orrery::executor::cuda {

bool reads_blocks(const Kernel& product) {
  return LowPrecisionOperands{product.reads}.in_blocks();
}

DecodedProduct::DecodedProduct(const Kernel& product, const BlockOperands& operands)
    : operation_{*product.operation}, reads_{operands.a, operands.b}, kernel_{product} {
  const LowPrecisionOperands reads{product.reads};
  if (reads.bias != nullptr) reads_[2] = *reads.bias;
  operation_.dtype = models::DType::bf16;
  kernel_.operation = &operation_;
  kernel_.reads = {reads_.data(), reads.bias == nullptr ? 2U : 3U};
}

}  // namespace orrery::executor::cuda
