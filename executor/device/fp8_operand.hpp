#pragma once
// fp8 operands of a Program: which of the formats each is stored in, and where its scale lies.

#include <array>
#include <cstddef>
#include <cstdint>

#include "executor/device/device.hpp"

namespace orrery::executor {

enum class Fp8 : std::uint8_t { e4m3, e5m2 };

/// What forward multiplies, activations and weights, has the finer steps of e4m3; gradients the
/// wider range of e5m2. Recomputation is forward.
/// Source  Micikevicius et al. 2022, arXiv 2209.05433, section 3
inline Fp8 fp8_written(const models::Operation& quantise) {
  return quantise.pass == models::Pass::backward ? Fp8::e5m2 : Fp8::e4m3;
}
/// Of a product in fp8: [gradient, weight] where the input's gradient is made, [input, gradient]
/// where the weight's is.
inline Fp8 fp8_read(const models::Operation& product, std::size_t read) {
  const bool backward = product.pass == models::Pass::backward;
  const std::size_t gradient = product.gemm.transpose_a ? 1 : 0;
  return backward && read == gradient ? Fp8::e5m2 : Fp8::e4m3;
}

/// After the numbers, from the next multiple of 64 bytes on, lies one float: the inverse of the
/// scale, what stored numbers are multiplied by.
inline constexpr std::int64_t fp8_scale_room = 64;

constexpr std::int64_t fp8_scale_offset(std::int64_t elements) {
  return (elements + 63) / 64 * 64;
}
inline float* fp8_inverse_scale(const View& view) {
  return reinterpret_cast<float*>(view.data + fp8_scale_offset(view.elements()));
}

/// Scales of blocks take a byte each. Where blocks run down columns there may be more of them than
/// along rows, of which the operand has the shape: as many as rows up to a multiple of 32 have.
/// After them lies the tensor's own. shape  [matrices, rows, scales of a row]
constexpr std::int64_t block_scales_offset(const std::array<std::int64_t, 3>& shape) {
  return fp8_scale_offset(shape[0] * ((shape[1] + 31) / 32 * 32) * shape[2]);
}
inline float* tensor_scale_of(const View& scales) {
  return reinterpret_cast<float*>(scales.data + block_scales_offset(scales.shape));
}

/// Bytes that an operand takes, with what lies after it.
inline std::int64_t room_of(const models::Operand& operand) {
  if (operand.dtype == models::DType::uint8) {
    return block_scales_offset(operand.shape) + fp8_scale_room;
  }
  const bool scaled = operand.dtype == models::DType::fp8;
  return scaled ? fp8_scale_offset(operand.elements()) + fp8_scale_room : operand.bytes().count();
}

}  // namespace orrery::executor
