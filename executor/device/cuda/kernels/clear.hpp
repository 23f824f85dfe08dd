#pragma once
// Sets numbers of GPU memory to zero.

#include "executor/device/cuda/kernels/launch.hpp"

namespace orrery::executor::cuda {

template <class T, int width>
struct Clear {
  std::int64_t n;
  T* to;

  __device__ void operator()(std::int64_t i) const {
    store(Pack<T, width>{}, to, i * width, n, true);
  }
};

/// Sets `count` numbers to zero.
template <class T>
void clear(T* to, std::int64_t count, Stream stream) {
  with_width(
      [&]<int width>(Width<width>) {
        launch_for_each(quotient_up(count, width), stream, Clear<T, width>{count, to});
      },
      to);
}

}  // namespace orrery::executor::cuda
