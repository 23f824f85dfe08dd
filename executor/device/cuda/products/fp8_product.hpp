#pragma once
// GEMMs of fp8 operands, on GPUs that have them. Tensor cores need both operands K-contiguous, so
// some are transposed first, byte by byte; a weight in bf16 is quantised on the way.

#include <cstddef>
#include <cstdint>
#include <string>

#include "executor/device/cuda/stream.hpp"
#include "executor/device/fp8_operand.hpp"

namespace orrery::executor::cuda {

/// Compute capability of the first GPUs whose tensor cores take 8 bits: Ada, then Hopper.
/// Source  NVIDIA, cuBLAS documentation, cublasLtMatmul, CUDA_R_8F_E4M3
inline constexpr int fp8_capability = 89;

struct Fp8Operand {
  const std::byte* codes = nullptr;
  const float* inverse = nullptr;  // inverse of the scale, on the GPU; codes are multiplied by it
  Fp8 format = Fp8::e4m3;
};
/// a [m, k] and b [n, k] of c = a b'.
struct Fp8Operands {
  Fp8Operand a, b;
};

/// Why a product in fp8 cannot run on any GPU; empty: it can.
std::string fp8_product_refusal(const models::Operation& product);

/// Enqueues the preparation of the operands. They are in `scratch`, which is aligned to 16 bytes
/// and has `fp8_product_scratch` bytes, or where they were; they are valid until the scratch is
/// used again.
Fp8Operands fp8_operands(const Kernel& product, Stream stream, std::byte* scratch);
std::int64_t fp8_product_scratch(const models::Operation& product);

/// Gradient of a bias: writes[1] += the column sums of a weight gradient's second operand.
void fp8_bias_gradient(const Kernel& product, const Fp8Operands& operands, Stream stream);

}  // namespace orrery::executor::cuda
