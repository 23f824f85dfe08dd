#pragma once
// What kernels are written with: storage formats and what they are computed in, packs of 16 bytes,
// sums over the threads of a group. Everything here runs on the GPU; ORRERY_EMULATED names the
// header that stands in for CUDA's where tests compile kernels for the host.

#ifdef ORRERY_EMULATED
#include ORRERY_EMULATED
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#endif

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "executor/device/half.hpp"

namespace orrery::executor::cuda {

inline constexpr unsigned warp_lanes = 32;
inline constexpr unsigned whole_warp = 0xffffffffU;

/// What numbers stored as T are computed in.
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

/// Rounded to nearest.
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

__device__ inline float root(float x) {
  return sqrtf(x);
}
__device__ inline double root(double x) {
  return sqrt(x);
}
__device__ inline float exponential(float x) {
  return expf(x);
}
__device__ inline double exponential(double x) {
  return exp(x);
}
__device__ inline float error_function(float x) {
  return erff(x);
}
__device__ inline double error_function(double x) {
  return erf(x);
}
/// b from 2^-126 to 2^126; 0 beyond.
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

/// Brings the line of memory into the second-level cache.
__device__ inline void prefetch([[maybe_unused]] const void* place) {
#ifndef ORRERY_EMULATED
  asm volatile("prefetch.global.L2 [%0];" ::"l"(place));
#endif
}

/// N numbers that are moved at once, in 16-byte accesses where they lie so.
template <class T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack {
  T of[N];
};

/// How many T fill 16 bytes.
template <class T>
inline constexpr int per_access = static_cast<int>(16 / sizeof(T));

/// `from[first]` to `from[first + N - 1]`, zeros outside of [0, end). `aligned` says that what is
/// asked for lies on 16 bytes (or all N on a multiple of their size).
template <int N, class T>
__device__ Pack<T, N> load(const T* from, std::int64_t first, std::int64_t end, bool aligned) {
  if (aligned && first >= 0 && first + N <= end) {
    return *reinterpret_cast<const Pack<T, N>*>(from + first);
  }
  Pack<T, N> pack{};
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (first + i >= 0 && first + i < end) pack.of[i] = from[first + i];
  }
  return pack;
}

template <int N, class T>
__device__ void store(const Pack<T, N>& pack, T* to, std::int64_t first, std::int64_t end,
                      bool aligned) {
  if (aligned && first >= 0 && first + N <= end) {
    *reinterpret_cast<Pack<T, N>*>(to + first) = pack;
    return;
  }
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (first + i >= 0 && first + i < end) to[first + i] = pack.of[i];
  }
}

/// The same pack, of which the compiler knows nothing more: numbers that were widened from it are
/// widened once more rather than kept in registers, which 16-bit rows would not fit into.
template <class T, int N>
__device__ Pack<T, N> anew(const Pack<T, N>& pack) {
#ifdef ORRERY_EMULATED
  return pack;
#else
  std::uint32_t words[sizeof(pack) / 4];
  memcpy(words, &pack, sizeof(pack));
#pragma unroll
  for (std::uint32_t& each : words) asm volatile("" : "+r"(each));
  Pack<T, N> same;
  memcpy(&same, words, sizeof(pack));
  return same;
#endif
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

/// This thread's place among all threads of the grid's first dimension.
__device__ inline std::int64_t thread_of_grid() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

/// Two numbers that are summed up together.
template <class C>
struct Two {
  C a, b;

  friend __device__ Two operator+(const Two& x, const Two& y) { return {x.a + y.a, x.b + y.b}; }
};

template <class T>
__device__ T from_lane(T value, unsigned across) {
  return __shfl_xor_sync(whole_warp, value, static_cast<int>(across));
}
template <class C>
__device__ Two<C> from_lane(const Two<C>& value, unsigned across) {
  return {from_lane(value.a, across), from_lane(value.b, across)};
}

struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Largest {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return larger(a, b);
  }
};

/// `join` over the values of the caller's group: `lanes` consecutive threads of the block, a power
/// of two. Every thread of the block calls it, with its own group's size the same for all; the
/// order of the sum is the same in every run.
template <class Join, class T>
__device__ T of_group(T value, unsigned lanes, Join join) {
  const unsigned width = lanes < warp_lanes ? lanes : warp_lanes;
  for (unsigned step = width / 2; step > 0; step /= 2) {
    value = join(value, from_lane(value, step));
  }
  if (lanes <= warp_lanes) return value;
  __shared__ T of_warps[warp_lanes];
  const unsigned warp = threadIdx.x / warp_lanes, warps = lanes / warp_lanes;
  __syncthreads();  // the last call's values have been read
  if (threadIdx.x % warp_lanes == 0) of_warps[warp] = value;
  __syncthreads();
  // Every lane takes one warp's, every warp all of its group's.
  value = of_warps[warp / warps * warps + threadIdx.x % warps];
  for (unsigned step = warps / 2; step > 0; step /= 2) value = join(value, from_lane(value, step));
  return value;
}

/// Runs `f(i)` for i in [0, count), one thread each.
template <class F>
__global__ void for_each(std::int64_t count, F f) {
  const std::int64_t i = thread_of_grid();
  if (i < count) f(i);
}

}  // namespace orrery::executor::cuda
