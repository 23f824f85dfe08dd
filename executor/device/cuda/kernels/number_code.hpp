#pragma once
// Numbers in kernels: storage formats and the types that they are computed in, and math functions
// of float and double under one name.

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "executor/device/cuda/kernels/device_code.hpp"
#include "executor/device/half.hpp"

namespace orrery::executor::cuda {

/// The type in which numbers stored as T are computed.
template <class T>
using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class C>
inline constexpr C infinity = std::numeric_limits<C>::infinity();

#ifdef ORRERY_EMULATED
inline float to_float(Bf16 value) {
  return widened(value);
}
inline float to_float(Fp16 value) {
  return widened(value);
}
inline Bf16 to_bf16(float value) {
  Bf16 stored;
  narrow(value, stored);
  return stored;
}
inline Fp16 to_fp16(float value) {
  Fp16 stored;
  narrow(value, stored);
  return stored;
}
#else
__device__ inline float to_float(Bf16 value) {
  return __bfloat162float(__ushort_as_bfloat16(value.bits));
}
__device__ inline float to_float(Fp16 value) {
  return __half2float(__ushort_as_half(value.bits));
}
__device__ inline Bf16 to_bf16(float value) {
  return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
}
__device__ inline Fp16 to_fp16(float value) {
  return {__half_as_ushort(__float2half_rn(value))};
}
#endif
__device__ inline float to_float(float value) {
  return value;
}
__device__ inline float to_float(double value) {
  return static_cast<float>(value);
}

/// A stored number as C, float or double.
template <class C, class T>
__device__ C widen_to(T value) {
  if constexpr (std::is_same_v<T, double>) {
    return static_cast<C>(value);
  } else {
    return static_cast<C>(to_float(value));
  }
}

/// A computed number as T, rounded to nearest.
template <class T, class C>
__device__ T from_float(C value) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return to_bf16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, Fp16>) {
    return to_fp16(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class C>
__device__ C root(C x) {
  return std::sqrt(x);
}
template <class C>
__device__ C exponential(C x) {
  return std::exp(x);
}
template <class C>
__device__ C error_function(C x) {
  return std::erf(x);
}
/// a / b for b from 2^-126 to 2^126; 0 beyond.
__device__ inline float quotient(float a, float b) {
  return __fdividef(a, b);
}
__device__ inline double quotient(double a, double b) {
  return a / b;
}
template <class T>
__device__ T larger(T a, T b) {
  return a < b ? b : a;
}
template <class T>
__device__ T smaller(T a, T b) {
  return b < a ? b : a;
}

/// a / b and its remainder; 64-bit division is slow, and seldom needed.
struct Division {
  std::int64_t quotient, remainder;
};
__device__ inline Division divided(std::int64_t a, std::int64_t b) {
  if (((a | b) >> 32) == 0) {
    const auto x = static_cast<std::uint32_t>(a), y = static_cast<std::uint32_t>(b);
    return {x / y, x % y};
  }
  return {a / b, a % b};
}

}  // namespace orrery::executor::cuda
