#pragma once
// Memory access in kernels: packs of numbers that are moved in accesses of 16 bytes.

#include <cstdint>

#include "executor/device/cuda/kernels/device_code.hpp"

namespace orrery::executor::cuda {

/// N numbers that are moved at once, in 16-byte accesses where they are aligned so.
template <class T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack {
  T of[N];
};

/// How many T fill 16 bytes.
template <class T>
inline constexpr int per_access = static_cast<int>(16 / sizeof(T));

/// Loads `from[first]` to `from[first + N - 1]`, zeros outside of [0, end). `aligned` says that the
/// address is a multiple of 16 bytes (or of the size of all N, if that is smaller).
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

/// The same pack, hidden from the compiler, which then converts its numbers again at the next use,
/// instead of keeping the widened ones in registers; 16-bit rows would not fit there.
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

/// Prefetches a line of memory into the L2 cache.
__device__ inline void prefetch([[maybe_unused]] const void* place) {
#ifndef ORRERY_EMULATED
  asm volatile("prefetch.global.L2 [%0];" ::"l"(place));
#endif
}

}  // namespace orrery::executor::cuda
