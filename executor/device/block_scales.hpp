#pragma once
// Numbers in 8 or 4 bits of which a block shares a scale: mxfp8 and nvfp4. Left out: blocks of two
// dimensions, the random Hadamard transform and the stochastic rounding of nvfp4's recipe.
//
//          numbers  block  scale of a block                             scale of the tensor
//   mxfp8  e4m3     32     e8m0, the least 2^k with largest <= 448 2^k  none
//   nvfp4  e2m1     16     e4m3 of largest / 6 / tensor's               largest / (6 448), fp32
//
// e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; to nearest, ties to the even code.
// Source  OCP Microscaling Formats (MX) 1.0, section 5; scales rounded up as NVIDIA Transformer
//         Engine's MXFP8BlockScaling; NVIDIA 2025, "Pretraining large language models with NVFP4",
//         arXiv 2509.25149

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "executor/device/fp8.hpp"
#include "hardware/dtype.hpp"

namespace orrery::executor {

enum class BlockFormat : std::uint8_t { mxfp8, nvfp4 };

constexpr BlockFormat block_format(hardware::DType numbers) {
  return numbers == hardware::DType::fp4 ? BlockFormat::nvfp4 : BlockFormat::mxfp8;
}
constexpr std::int64_t block_of(BlockFormat format) {
  return format == BlockFormat::nvfp4 ? 16 : 32;
}

inline float widened_e2m1(std::uint8_t code) {
  constexpr float magnitudes[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  return (code & 8U) != 0 ? -magnitudes[code & 7U] : magnitudes[code & 7U];
}
inline std::uint8_t narrowed_e2m1(float value) {
  const float x = std::abs(value);
  const int code = static_cast<int>(x > 0.25F) + static_cast<int>(x >= 0.75F) +
                   static_cast<int>(x > 1.25F) + static_cast<int>(x >= 1.75F) +
                   static_cast<int>(x > 2.5F) + static_cast<int>(x >= 3.5F) +
                   static_cast<int>(x > 5);
  return static_cast<std::uint8_t>(code | (std::signbit(value) ? 8 : 0));
}

/// 2^(code - 127); 255 is no number.
inline float widened_e8m0(std::uint8_t code) {
  return code == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, code - 127);
}

/// What a block of nvfp4's scales are counted in; of zeros 1.
inline float tensor_scale(float largest) {
  return largest > 0 ? largest / (6.0F * 448.0F) : largest == 0 ? 1.0F : largest;
}

/// The code of a block's scale, from the largest magnitude among its numbers.
inline std::uint8_t block_scale(BlockFormat format, float largest, float of_tensor) {
  if (format == BlockFormat::nvfp4) return narrowed_fp8<E4m3>(largest / 6.0F / of_tensor);
  if (!(largest <= std::numeric_limits<float>::max())) return 255;
  if (largest == 0) return 127;
  int power = std::ilogb(largest) - 9;
  while (std::ldexp(448.0, power) < static_cast<double>(largest)) ++power;
  return static_cast<std::uint8_t>(power < -127 ? 0 : power + 127);
}
inline float widened_scale(BlockFormat format, std::uint8_t code, float of_tensor) {
  return format == BlockFormat::nvfp4 ? widened_fp8<E4m3>(code) * of_tensor : widened_e8m0(code);
}

/// The code of a number in a block with this scale, and the number that a code means there.
inline std::uint8_t block_code(BlockFormat format, float value, float scale) {
  const float scaled = scale > 0 ? value / scale : scale == 0 ? 0.0F : scale;
  return format == BlockFormat::nvfp4 ? narrowed_e2m1(scaled) : narrowed_fp8<E4m3>(scaled);
}
inline float block_number(BlockFormat format, std::uint8_t code, float scale) {
  return (format == BlockFormat::nvfp4 ? widened_e2m1(code) : widened_fp8<E4m3>(code)) * scale;
}

}  // namespace orrery::executor
