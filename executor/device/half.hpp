#pragma once
// 16-bit floating point as storage: widened to fp32 exactly, rounded to nearest, ties to even.
// Source  IEEE 754-2019 for binary16; bfloat16 is the upper half of binary32

#include <bit>
#include <cstdint>

namespace orrery::executor {

struct Bf16 {
  std::uint16_t bits = 0;
};
struct Fp16 {
  std::uint16_t bits = 0;
};

inline float widened(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

inline void narrow(float value, Bf16& to) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
  to.bits = static_cast<std::uint16_t>((nan ? bits | 0x400000U : rounded) >> 16);
}

inline float widened(Fp16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000U) << 16;
  const std::uint32_t rest = static_cast<std::uint32_t>(value.bits & 0x7fffU) << 13;
  if (rest >= 0x0f800000U) return std::bit_cast<float>(sign | (rest + 0x70000000U));  // inf, nan
  // Multiplying by 2^(127 - 15) rebases the exponent, and normalises subnormal numbers too.
  return std::bit_cast<float>(sign |
                              std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) * 0x1p112F));
}

inline void narrow(float value, Fp16& to) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000U) {
    half = 0x7e00U;
  } else if (magnitude >= 0x477ff000U) {
    half = 0x7c00U;  // 65520 and above round to infinity
  } else if (magnitude < 0x38800000U) {
    // Subnormal: adding 1/2 leaves the value in units of 2^-24 in the lowest bits, rounded by the
    // sum itself.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  } else {
    half = (magnitude + 0xfffU + ((magnitude >> 13) & 1U) - 0x38000000U) >> 13;
  }
  to.bits = static_cast<std::uint16_t>(sign | half);
}

}  // namespace orrery::executor
