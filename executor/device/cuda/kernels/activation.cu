// Activations, element by element. A thread has one pack of an output row.

#include "executor/device/activations.hpp"
#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/kernels.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"

namespace orrery::executor::cuda {

namespace {

/// The functions of this device for `with_activation`.
struct KernelMath {
  template <class C>
  __device__ static C exponential(C x) {
    return cuda::exponential(x);
  }
  template <class C>
  __device__ static C accurate_exponential(C x) {
    return cuda::exponential(x);
  }
  template <class C>
  __device__ static C error_function(C x) {
    return cuda::error_function(x);
  }
  template <class C>
  __device__ static C quotient(C a, C b) {
    return cuda::quotient(a, b);
  }
};

enum class Gate : std::uint8_t { none, before_up };  // the row is [gate | up]

/// out = f(x), or f(gate) up.
template <class T, class F, Gate gate>
struct Activate {
  Packs packs;
  const T* x;
  T* out;

  __device__ void operator()(std::int64_t i) const {
    using C = Compute<T>;
    constexpr int width = per_access<T>;
    const auto [row, at] = packs.place<T>(i);
    const std::int64_t first = gate == Gate::none ? row : 2 * row;
    auto pack = packs.load(x, first, at);
    Pack<T, width> up{};
    if constexpr (gate != Gate::none) up = packs.load(x, first + 1, at);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      C y = F::value(widen_to<C>(pack.of[j]));
      if constexpr (gate != Gate::none) y *= widen_to<C>(up.of[j]);
      pack.of[j] = from_float<T>(y);
    }
    packs.store(pack, out, row, at);
  }
};

/// dx = dy f'(x), or [dy up f'(gate) | dy f(gate)].
template <class T, class F, Gate gate>
struct ActivateBackward {
  Packs packs;
  const T* gradient;
  const T* x;
  T* out;

  __device__ void operator()(std::int64_t i) const {
    using C = Compute<T>;
    constexpr int width = per_access<T>;
    const auto [row, at] = packs.place<T>(i);
    const std::int64_t first = gate == Gate::none ? row : 2 * row;
    const auto dy = packs.load(gradient, row, at);
    auto pack = packs.load(x, first, at);
    Pack<T, width> up{};
    if constexpr (gate != Gate::none) up = packs.load(x, first + 1, at);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const C g = widen_to<C>(pack.of[j]);
      C slope = widen_to<C>(dy.of[j]);
      if constexpr (gate != Gate::none) {
        const C factor = widen_to<C>(up.of[j]);
        up.of[j] = from_float<T>(slope * F::value(g));
        slope *= factor;
      }
      pack.of[j] = from_float<T>(slope * F::slope(g));
    }
    packs.store(pack, out, first, at);
    if constexpr (gate != Gate::none) packs.store(up, out, first + 1, at);
  }
};

}  // namespace

void activation(const Call& call) {
  const std::int64_t n = call.out(0).shape[2], rows = call.out(0).elements() / n;
  const bool gated = call.in(0).shape[2] == 2 * n;
  with_format(call.in(0).dtype, [&]<class T>(Type<T>) {
    const T* x = call.read<T>(0);
    T* out = call.write<T>(0);
    // Without a gate all rows are treated as one row.
    const Packs packs =
        gated ? Packs{rows, n, per_access<T>, x, out} : Packs{1, rows * n, per_access<T>, x, out};
    with_activation<KernelMath>(call.operation().activation(), [&]<class F>(Type<F>) {
      gated ? packs.launch(call.stream, Activate<T, F, Gate::before_up>{packs, x, out})
            : packs.launch(call.stream, Activate<T, F, Gate::none>{packs, x, out});
    });
  });
}

void activation_backward(const Call& call) {
  const std::int64_t n = call.in(0).shape[2], rows = call.in(0).elements() / n;
  const bool gated = call.in(1).shape[2] == 2 * n;
  with_format(call.in(0).dtype, [&]<class T>(Type<T>) {
    const T* dy = call.read<T>(0);
    const T* x = call.read<T>(1);
    T* out = call.write<T>(0);
    const Packs packs = gated ? Packs{rows, n, per_access<T>, dy, x, out}
                              : Packs{1, rows * n, per_access<T>, dy, x, out};
    with_activation<KernelMath>(call.operation().activation(), [&]<class F>(Type<F>) {
      gated ? packs.launch(call.stream, ActivateBackward<T, F, Gate::before_up>{packs, dy, x, out})
            : packs.launch(call.stream, ActivateBackward<T, F, Gate::none>{packs, dy, x, out});
    });
  });
}

}  // namespace orrery::executor::cuda
