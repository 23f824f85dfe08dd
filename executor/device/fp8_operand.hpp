#pragma once
// fp8 and block-scaled operands of a Program: the fp8 format of each, and where its scales are in
// memory.

#include <array>
#include <cstddef>
#include <cstdint>

#include "executor/device/device.hpp"
#include "executor/device/fp8.hpp"

namespace orrery::executor {

enum class Fp8 : std::uint8_t { e4m3, e5m2 };

/// f(E4m3{}) or f(E5m2{}).
template <class F>
void with_fp8_format(Fp8 format, F f) {
  format == Fp8::e4m3 ? f(E4m3{}) : f(E5m2{});
}

/// The format that a quantisation writes: e4m3, with finer steps, for activations and weights,
/// which forward and recomputation multiply; e5m2, with a wider range, for gradients.
/// Source  Micikevicius et al. 2022, arXiv 2209.05433, section 3
inline Fp8 fp8_written(const models::Operation& quantise) {
  return quantise.pass == models::Pass::backward ? Fp8::e5m2 : Fp8::e4m3;
}
/// The format of an fp8 GEMM's operand. In backward it reads [gradient, weight] for the input's
/// gradient, [input, gradient] for the weight's.
inline Fp8 fp8_read(const models::Operation& product, std::size_t read) {
  const bool backward = product.pass == models::Pass::backward;
  const std::size_t gradient = product.gemm().transpose_a ? 1 : 0;
  return backward && read == gradient ? Fp8::e5m2 : Fp8::e4m3;
}

/// Bytes for one float, the inverse of the scale, which an fp8 tensor has after its numbers, from
/// the next multiple of 64 bytes on. Stored numbers are multiplied by it.
inline constexpr std::int64_t fp8_scale_room = 64;

constexpr std::int64_t fp8_scale_offset(std::int64_t elements) {
  return (elements + 63) / 64 * 64;
}
inline float* fp8_inverse_scale(const View& view) {
  return reinterpret_cast<float*>(view.data + fp8_scale_offset(view.elements()));
}

/// Where the tensor's own scale is, in bytes: after the block scales, of one byte each. The operand
/// has the shape of scales along rows; blocks down columns may have more of them, but no more than
/// rows up to a multiple of 32 would.
/// shape  [matrices, rows, scales of a row]
constexpr std::int64_t block_scales_offset(const std::array<std::int64_t, 3>& shape) {
  return fp8_scale_offset(shape[0] * ((shape[1] + 31) / 32 * 32) * shape[2]);
}
inline float* tensor_scale_of(const View& scales) {
  return reinterpret_cast<float*>(scales.data + block_scales_offset(scales.shape));
}

/// Bytes that an operand takes, with the scale that is stored after it.
inline std::int64_t room_of(const models::Operand& operand) {
  if (operand.dtype == models::DType::uint8) {
    return block_scales_offset(operand.shape) + fp8_scale_room;
  }
  const bool scaled = operand.dtype == models::DType::fp8;
  return scaled ? fp8_scale_offset(operand.elements()) + fp8_scale_room : operand.bytes().count();
}

}  // namespace orrery::executor
