// Matrix products on the GPU: cuBLASLt's GEMM together with our own kernels, which decode operands,
// add biases and compute their gradients.

#include "executor/device/cuda/cuda_device.hpp"
#include "executor/device/cuda/products/biases.hpp"
#include "executor/device/cuda/products/block_product.hpp"
#include "executor/device/cuda/products/fp8_product.hpp"

namespace orrery::executor::cuda {

using models::DType;
using models::OpKind;

void CudaDevice::product(const Kernel& kernel, Stream stream) {
  if (reads_blocks(kernel)) return block_product(kernel, stream);
  if (kernel.operation->dtype == DType::fp8) return fp8_product(kernel, stream);
  const Bytes sums{bias_gradients_scratch(kernel, kernel.reads[1].dtype)};
  multiply(kernel, nullptr, stream, scratch(sums));
}

/// factors  on the GPU, as BlockOperands has them for decoded operands; null: none
/// sums     scratch for the gradient of a bias
void CudaDevice::multiply(const Kernel& kernel, const float* factors, Stream stream,
                          std::byte* sums) {
  bool complete = false;
  if (kernel.operation->kind == OpKind::grouped_gemm) {
    gemms_->grouped(kernel, factors, stream);
  } else {
    complete = gemms_->gemm(kernel, factors, stream);
    fill_columns_after(kernel, stream);
  }
  if (!complete) add_biases(kernel, stream);
  add_bias_gradients(kernel, stream, sums, factors == nullptr ? nullptr : factors + 2);
}

void CudaDevice::block_product(const Kernel& kernel, Stream stream) {
  const std::int64_t own = block_product_scratch(kernel);
  std::byte* const memory = scratch(Bytes{own + bias_gradients_scratch(kernel, DType::bf16)});
  const BlockOperands operands = block_operands(kernel, stream, memory);
  const DecodedProduct decoded{kernel, operands};
  multiply(decoded.kernel(), operands.factors, stream, memory + own);
}

void CudaDevice::fp8_product(const Kernel& kernel, Stream stream) {
  std::byte* memory = scratch(Bytes{fp8_product_scratch(*kernel.operation)});
  const Fp8Operands operands = fp8_operands(kernel, stream, memory);
  const bool complete = gemms_->gemm(kernel, operands, stream);
  if (!complete) add_biases(kernel, stream);
  if (kernel.writes.size() > 1) fp8_bias_gradient(kernel, operands, stream);
}

}  // namespace orrery::executor::cuda
