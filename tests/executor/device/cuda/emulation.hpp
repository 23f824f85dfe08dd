#pragma once
// CUDA's language on the host, so that kernels are tested where there is no GPU: blocks run one
// after another, the threads of a block are fibers that take turns at barriers. Time, caches, banks
// and the relaxed order of memory are left out. Stricter than a GPU: every thread of a block
// reaches each of its barriers, every lane of a warp each shuffle, whatever mask is given.
//
// A warp runs until the block's next barrier before another does, and every other block runs its
// threads from the last to the first, so that a barrier that is missing shows in one of the two
// orders. Dynamic shared memory begins as NaN.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "executor/device/half.hpp"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static thread_local  // ranks of a test are threads of the host

namespace orrery::executor::cuda {

struct dim3 {
  unsigned x = 1, y = 1, z = 1;

  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x{x_}, y{y_}, z{z_} {}
};

inline constinit thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulation {

inline constexpr unsigned lanes = 32;
/// What a lane can give to the others of its warp at once.
inline constexpr std::size_t lane_bytes = 64;

/// Runs `body(of)` as every thread of every block. An exception of a thread is thrown here.
/// Errors  a barrier that some thread never reaches: std::logic_error
void run(dim3 blocks, dim3 threads, std::size_t shared_bytes, void (*body)(void*), void* of);

void wait_for_block();
void wait_for_warp();
/// Lane of the calling thread in its warp, and how many lanes that has.
unsigned lane();
unsigned warp_size();
std::byte* shared_memory();

/// Gives `size` bytes to the warp and waits for the other lanes': what lane l gave lies at
/// l * lane_bytes, until the caller's next exchange or barrier.
const std::byte* exchange(const void* mine, std::size_t size);

template <class T>
T given_by(const std::byte* exchanged, unsigned from) {
  T value;
  std::memcpy(&value, exchanged + from * lane_bytes, sizeof(T));
  return value;
}

/// The value of lane `from` of the caller's segment, its own where there is no such lane.
template <class T>
T shuffled(T value, std::int64_t from, unsigned width) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= lane_bytes);
  const std::byte* all = exchange(&value, sizeof(T));
  const std::int64_t first = lane() / width * width;
  const bool inside = from >= first && from < first + width && from < warp_size();
  return inside ? given_by<T>(all, static_cast<unsigned>(from)) : value;
}

}  // namespace emulation

inline void __syncthreads() {
  emulation::wait_for_block();
}
inline void __syncwarp(unsigned = ~0U) {
  emulation::wait_for_warp();
}
inline void __threadfence() {}

template <class T>
T __shfl_sync(unsigned, T value, int source, int width = 32) {
  const int first = static_cast<int>(emulation::lane()) / width * width;
  return emulation::shuffled(value, first + source % width, static_cast<unsigned>(width));
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask, int width = 32) {
  return emulation::shuffled(value, emulation::lane() ^ static_cast<unsigned>(mask),
                             static_cast<unsigned>(width));
}
template <class T>
T __shfl_down_sync(unsigned, T value, unsigned by, int width = 32) {
  return emulation::shuffled(value, std::int64_t{emulation::lane()} + by,
                             static_cast<unsigned>(width));
}
template <class T>
T __shfl_up_sync(unsigned, T value, unsigned by, int width = 32) {
  return emulation::shuffled(value, std::int64_t{emulation::lane()} - by,
                             static_cast<unsigned>(width));
}
inline unsigned __ballot_sync(unsigned, int yes) {
  const std::byte* all = emulation::exchange(&yes, sizeof(yes));
  unsigned mask = 0;
  for (unsigned i = 0; i < emulation::warp_size(); ++i) {
    if (emulation::given_by<int>(all, i) != 0) mask |= 1U << i;
  }
  return mask;
}
inline int __any_sync(unsigned mask, int yes) {
  return __ballot_sync(mask, yes) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int yes) {
  return __ballot_sync(mask, yes == 0 ? 1 : 0) == 0 ? 1 : 0;
}

// Threads of a block take turns and blocks follow each other, so a plain sum is an atomic one.
template <class T>
T atomicAdd(T* to, std::type_identity_t<T> value) {
  const T before = *to;
  *to = before + value;
  return before;
}
template <class T>
T atomicMax(T* to, std::type_identity_t<T> value) {
  const T before = *to;
  *to = std::max(before, value);
  return before;
}

inline unsigned __float_as_uint(float value) {
  return std::bit_cast<unsigned>(value);
}
inline float __uint_as_float(unsigned value) {
  return std::bit_cast<float>(value);
}
inline long long __double_as_longlong(double value) {
  return std::bit_cast<long long>(value);
}
inline int __popc(unsigned value) {
  return std::popcount(value);
}
inline float __fdividef(float a, float b) {
  return a / b;
}
inline float rsqrt(float value) {
  return 1 / std::sqrt(value);
}
inline double rsqrt(double value) {
  return 1 / std::sqrt(value);
}
template <class T>
T __ldg(const T* from) {
  return *from;
}

}  // namespace orrery::executor::cuda
