#pragma once
// Dispatch on the format of experts' rows, and of the weights with which they are added up.

#include <type_traits>

#include "executor/device/cuda/kernels/call.hpp"

namespace orrery::executor::cuda {

/// Calls f with the type of rows and the type of weights; weights are fp32 for rows of 16 bits.
template <class F>
void with_weights(models::DType rows, F f) {
  with_format(rows, [&]<class T>(Type<T>) {
    f(type, Type<std::conditional_t<std::is_same_v<T, double>, double, float>>{});
  });
}

}  // namespace orrery::executor::cuda
