#pragma once
// What every kernel needs: CUDA's own headers, the index of a thread, and a kernel with one thread
// for each index. All code in headers named *_code.hpp runs on the GPU. ORRERY_EMULATED names the
// header that replaces CUDA's where tests compile kernels for the host.

#ifdef ORRERY_EMULATED
#include ORRERY_EMULATED
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#endif

#include <cstdint>

namespace orrery::executor::cuda {

inline constexpr unsigned warp_lanes = 32;
inline constexpr unsigned whole_warp = 0xffffffffU;

/// This thread's index among all threads of the grid's first dimension.
__device__ inline std::int64_t thread_of_grid() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

/// Runs `f(i)` for i in [0, count), one thread each.
template <class F>
__global__ void for_each(std::int64_t count, F f) {
  const std::int64_t i = thread_of_grid();
  if (i < count) f(i);
}

}  // namespace orrery::executor::cuda
