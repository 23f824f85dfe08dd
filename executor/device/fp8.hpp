#pragma once
// 8-bit floating point as a storage format, and the scale of a tensor that is stored so. Leaves out
// which operand is stored in which of the two formats (fp8_operand.hpp).
//
//         exponent  mantissa  largest  least normal  least   beyond the largest
//   e4m3  4 bits    3 bits    448      2^-6          2^-9    NaN only, at 7f and ff
//   e5m2  5 bits    2 bits    57344    2^-14         2^-16   infinity at 7c, then NaN, as binary16
//
// Source  Micikevicius et al. 2022, "FP8 formats for deep learning", arXiv 2209.05433, table 1

#include <cstdint>

#include "executor/device/anywhere.hpp"

namespace orrery::executor {

/// A bit cast that also works in kernels.
template <class To, class From>
ORRERY_ANYWHERE constexpr To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, value);
}

struct E4m3 {
  static constexpr int mantissa = 3, bias = 7;
  static constexpr std::uint32_t largest = 0x7e;  // finite code, without its sign
  std::uint8_t bits = 0;
};
struct E5m2 {
  static constexpr int mantissa = 2, bias = 15;
  static constexpr std::uint32_t largest = 0x7b;
  std::uint8_t bits = 0;
};

/// Constants for converting between a code and the fp32 number of the same exponent and mantissa.
template <class T>
struct OfFp8 {
  static constexpr int shift = 23 - T::mantissa;
  static constexpr std::uint32_t rebase = static_cast<std::uint32_t>(127 - T::bias) << 23;
  static constexpr std::uint32_t largest = (T::largest << shift) + rebase;
  static constexpr std::uint32_t least_normal = rebase + (1U << 23);
  /// The power of two whose unit in the last place is the format's least number.
  static constexpr std::uint32_t magic = static_cast<std::uint32_t>(151 - T::bias - T::mantissa)
                                         << 23;
};

template <class T>
ORRERY_ANYWHERE float decode_fp8(std::uint8_t code) {
  const std::uint32_t sign = (code & 0x80U) << 24, magnitude = code & 0x7fU;
  if (magnitude > T::largest) {
    const bool infinite = T::bias == E5m2::bias && magnitude == T::largest + 1;
    return bits_as<float>(sign | (infinite ? 0x7f800000U : 0x7fc00000U));
  }
  // Multiplying by the power rebases the exponent and normalises subnormal numbers too.
  const float power = bits_as<float>(static_cast<std::uint32_t>(254 - T::bias) << 23);
  const float rebased = bits_as<float>(magnitude << OfFp8<T>::shift) * power;
  return bits_as<float>(sign | bits_as<std::uint32_t>(rebased));
}

/// Rounds to nearest, ties to even, and saturates: magnitudes beyond the largest number, infinity
/// included, become the largest.
template <class T>
ORRERY_ANYWHERE std::uint8_t encode_fp8(float value) {
  using Of = OfFp8<T>;
  const auto bits = bits_as<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 24) & 0x80U, magnitude = bits & 0x7fffffffU;
  std::uint32_t code = 0;
  if (magnitude > 0x7f800000U) {
    code = 0x7fU;
  } else if (magnitude >= Of::largest) {
    code = T::largest;
  } else if (magnitude < Of::least_normal) {
    // The sum rounds, and its lowest bits are then the value in units of the least number.
    code =
        bits_as<std::uint32_t>(bits_as<float>(magnitude) + bits_as<float>(Of::magic)) - Of::magic;
  } else {
    const std::uint32_t half = (1U << (Of::shift - 1)) - 1U;
    code = (magnitude + half + ((magnitude >> Of::shift) & 1U) - Of::rebase) >> Of::shift;
  }
  return static_cast<std::uint8_t>(sign | code);
}

inline float widened(E4m3 value) {
  return decode_fp8<E4m3>(value.bits);
}
inline float widened(E5m2 value) {
  return decode_fp8<E5m2>(value.bits);
}
inline void narrow(float value, E4m3& to) {
  to.bits = encode_fp8<E4m3>(value);
}
inline void narrow(float value, E5m2& to) {
  to.bits = encode_fp8<E5m2>(value);
}

/// A tensor's scale, by which numbers are multiplied before they are stored, and its inverse, by
/// which stored numbers are multiplied; both as bits of fp32.
struct Fp8Scale {
  std::uint32_t bits, inverse;
};

/// Current scaling: one scale per tensor, from the numbers of this very tensor.
///   scale = 2^k,  k = floor(log2(largest of the format / largest |x| of the tensor))
/// The tensor's largest number falls in the upper half of the format's range, and none beyond it.
/// Scaling by a power of two does not round, so shards of a tensor with different scales hold the
/// same numbers as the whole tensor would, except near zero. A tensor of zeros has scale 1. If any
/// number is infinite or NaN, the scale is NaN, and so is the whole tensor.
/// magnitude  bits of the largest |x|; as integers they sort like the numbers, NaN last
/// Source  Micikevicius et al. 2022, section 3, per-tensor scaling; NVIDIA Transformer Engine,
///         Float8CurrentScaling, with power_2_scale
template <class T>
ORRERY_ANYWHERE constexpr Fp8Scale fp8_scale_for(std::uint32_t magnitude) {
  if (magnitude >= 0x7f800000U) return {0x7fc00000U, 0x7fc00000U};
  if (magnitude == 0) return {127U << 23, 127U << 23};
  // The difference of the exponents, less one if the tensor's mantissa is above the format's.
  const int k = (static_cast<int>(OfFp8<T>::largest) - static_cast<int>(magnitude)) >> 23;
  const auto kept = static_cast<std::uint32_t>(127 + (k < 126 ? k : 126));  // 1 / scale is normal
  return {kept << 23, (254U - kept) << 23};
}

}  // namespace orrery::executor
