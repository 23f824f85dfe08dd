#pragma once
// Reductions (sums and largest values) over a group of threads, always in the same order.

#include "executor/device/cuda/kernels/device_code.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"

namespace orrery::executor::cuda {

/// Two numbers that are reduced together.
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

/// Reduces the values of the caller's group with `join`. A group is `lanes` consecutive threads of
/// the block, a power of two. Every thread of the block must call it, with the same `lanes`; the
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
  __syncthreads();  // the previous call's values have been read
  if (threadIdx.x % warp_lanes == 0) of_warps[warp] = value;
  __syncthreads();
  // Every lane takes one warp's value, so every warp has all values of its group.
  value = of_warps[warp / warps * warps + threadIdx.x % warps];
  for (unsigned step = warps / 2; step > 0; step /= 2) value = join(value, from_lane(value, step));
  return value;
}

}  // namespace orrery::executor::cuda
