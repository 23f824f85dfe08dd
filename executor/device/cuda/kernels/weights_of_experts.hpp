#pragma once
// Formats of experts' rows and of the weights that they are added up with.

#include <type_traits>

#include "executor/device/cuda/kernels/call.hpp"

namespace orrery::executor::cuda {

/// f(T of rows, W of weights), which are fp32 next to 16 bits.
template <class F>
void with_weights(models::DType rows, F f) {
  with_format(rows, [&](auto type) {
    using T = typename decltype(type)::type;
    f(type, Type<std::conditional_t<std::is_same_v<T, double>, double, float>>{});
  });
}

}  // namespace orrery::executor::cuda
