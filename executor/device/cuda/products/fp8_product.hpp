#pragma once
// Products of 8-bit operands on GPUs that have them. Their tensor cores want both operands with k
// K-contiguous, so some are transposed first, byte by byte; a weight in bf16 is quantised on its
// way.

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
  const float* inverse = nullptr;  // what codes are multiplied by, on the GPU
  Fp8 format = Fp8::e4m3;
};
/// a [m, k] and b [n, k] of c = a b'.
struct Fp8Operands {
  Fp8Operand a, b;
};

/// Why a product in fp8 cannot run on any GPU; empty: it can.
std::string fp8_product_refusal(const models::Operation& product);

/// Enqueues what makes the operands ready; they lie in `scratch`, on 16 bytes and of as many as
/// `fp8_product_scratch` says, or where they were, and are good until the scratch is used again.
Fp8Operands fp8_operands(const Kernel& product, Stream stream, std::byte* scratch);
std::int64_t fp8_product_scratch(const models::Operation& product);

/// writes[1] += the columns of a weight gradient's second operand: the gradient of a bias.
void fp8_bias_gradient(const Kernel& product, const Fp8Operands& operands, Stream stream);

}  // namespace orrery::executor::cuda
