#pragma once
// Dispatch on the format of experts' rows, and of the weights with which they are added up.

#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"

namespace orrery::executor::cuda {

/// Calls f with the type of rows and the type of weights; weights are fp32 for rows of 16 bits.
template <class F>
void with_weights(models::DType rows, F f) {
  with_format(rows, [&]<class T>(Type<T> type) { f(type, Type<Compute<T>>{}); });
}

}  // namespace orrery::executor::cuda
