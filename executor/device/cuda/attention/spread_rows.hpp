#pragma once
// Building blocks of attention without tensor cores: rows spread over the lanes of a warp, and the
// online softmax of one query, over keys that arrive one by one.

#include "executor/device/cuda/kernels/device_code.hpp"
#include "executor/device/cuda/kernels/group_code.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"

namespace orrery::executor::cuda {

/// Columns of a row that each lane has: lane l has l, l + 32, ...
inline constexpr int columns_of_lane = 8;
template <class T>
struct SpreadRow {
  T of[columns_of_lane] = {};

  /// Adds `weight` times the other.
  __device__ void add(T weight, const SpreadRow& other) {
#pragma unroll
    for (int i = 0; i < columns_of_lane; ++i) of[i] += weight * other.of[i];
  }
};

__device__ inline int column_of_lane(int i) {
  return static_cast<int>(threadIdx.x % warp_lanes + i * warp_lanes);
}

template <class C, class T>
__device__ SpreadRow<C> spread(const T* row, int width) {
  SpreadRow<C> x;
#pragma unroll
  for (int i = 0; i < columns_of_lane; ++i) {
    if (column_of_lane(i) < width) x.of[i] = widen_to<C>(row[column_of_lane(i)]);
  }
  return x;
}

template <class C, class T>
__device__ void gather(const SpreadRow<C>& x, C factor, T* row, int width) {
#pragma unroll
  for (int i = 0; i < columns_of_lane; ++i) {
    if (column_of_lane(i) < width) row[column_of_lane(i)] = from_float<T>(factor * x.of[i]);
  }
}

template <class T>
__device__ T product(const SpreadRow<T>& a, const SpreadRow<T>& b) {
  T sum = 0;
#pragma unroll
  for (int i = 0; i < columns_of_lane; ++i) sum += a.of[i] * b.of[i];
  return of_group(sum, warp_lanes, Sum{});
}

/// Online softmax: weights relative to the largest score so far, and the weighted sum of values.
template <class T>
struct PlainSoftmax {
  T largest = -INFINITY, sum = 0;
  SpreadRow<T> out;

  __device__ void add(T score, const SpreadRow<T>& value) {
    const T top = larger(largest, score);
    const T fade = exponential(largest - top), weight = exponential(score - top);
    largest = top;
    sum = sum * fade + weight;
#pragma unroll
    for (T& each : out.of) each *= fade;
    out.add(weight, value);
  }
  __device__ T log_sum() const {
    return largest + static_cast<T>(log(sum));
  }
};

}  // namespace orrery::executor::cuda
