// Activations, element by element. A thread has one pack of an output row.

#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/kernels.hpp"
#include "executor/device/cuda/kernels/launch.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"
#include "executor/device/cuda/kernels/pack_code.hpp"

namespace orrery::executor::cuda {

namespace {

using models::Activation;

/// tanh(x) = 1 - 2 / (exp(2x) + 1)
template <class C>
__device__ C hyperbolic_tangent(C x) {
  return C(1) - quotient(C(2), exponential(C(2) * x) + C(1));
}
/// 1 / (1 + exp(-x))
template <class C>
__device__ C logistic(C x) {
  return quotient(C(1), C(1) + exponential(-x));
}

/// An activation function and its derivative.
struct Gelu {
  /// x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3)
  /// Source  Hendrycks & Gimpel 2016, arXiv 1606.08415, the approximation that GPT-2 uses
  static constexpr double root = 0.79788456080286535588, cubic = 0.044715;

  template <class C>
  __device__ static C value(C x) {
    const C u = C(root) * (x + C(cubic) * x * x * x);
    return C(0.5) * x * (C(1) + hyperbolic_tangent(u));
  }
  template <class C>
  __device__ static C slope(C x) {
    const C t = hyperbolic_tangent(C(root) * (x + C(cubic) * x * x * x));
    const C du = C(root) * (C(1) + C(3) * C(cubic) * x * x);
    return C(0.5) * (C(1) + t) + C(0.5) * x * (C(1) - t * t) * du;
  }
};
/// x P(x), P the integral of the normal density p up to x; its slope is P(x) + x p(x).
struct GeluErf {
  static constexpr double root_half = 0.70710678118654752440, density = 0.39894228040143267794;

  template <class C>
  __device__ static C integral(C x) {
    return C(0.5) * (C(1) + error_function(x * C(root_half)));
  }
  template <class C>
  __device__ static C value(C x) {
    return x * integral(x);
  }
  template <class C>
  __device__ static C slope(C x) {
    return integral(x) + x * C(density) * exponential(C(-0.5) * x * x);
  }
};
struct Silu {
  template <class C>
  __device__ static C value(C x) {
    return x * logistic(x);
  }
  template <class C>
  __device__ static C slope(C x) {
    const C s = logistic(x);
    return s * (C(1) + x * (C(1) - s));
  }
};
struct Relu {
  template <class C>
  __device__ static C value(C x) {
    return x > C{} ? x : C{};
  }
  template <class C>
  __device__ static C slope(C x) {
    return x > C{} ? C(1) : C{};
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
    const Division of = divided(i, packs.in_row);
    const std::int64_t row = of.quotient * packs.n, at = of.remainder * width;
    const T* from = x + (gate == Gate::none ? row : 2 * row);
    auto pack = load<width>(from, at, packs.n, packs.aligned);
    Pack<T, width> up{};
    if constexpr (gate != Gate::none) up = load<width>(from + packs.n, at, packs.n, packs.aligned);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      C y = F::value(widen_to<C>(pack.of[j]));
      if constexpr (gate != Gate::none) y *= widen_to<C>(up.of[j]);
      pack.of[j] = from_float<T>(y);
    }
    store(pack, out + row, at, packs.n, packs.aligned);
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
    const Division of = divided(i, packs.in_row);
    const std::int64_t row = of.quotient * packs.n, at = of.remainder * width;
    const std::int64_t first = gate == Gate::none ? row : 2 * row;
    const auto dy = load<width>(gradient + row, at, packs.n, packs.aligned);
    auto pack = load<width>(x + first, at, packs.n, packs.aligned);
    Pack<T, width> up{};
    if constexpr (gate != Gate::none) {
      up = load<width>(x + first + packs.n, at, packs.n, packs.aligned);
    }
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
    store(pack, out + first, at, packs.n, packs.aligned);
    if constexpr (gate != Gate::none) {
      store(up, out + first + packs.n, at, packs.n, packs.aligned);
    }
  }
};

/// Calls run(Type<F>{}) for an activation function F.
template <class Run>
void with_function(Activation activation, Run run) {
  switch (activation) {
    case Activation::gelu:
      return run(Type<Gelu>{});
    case Activation::silu:
      return run(Type<Silu>{});
    case Activation::relu:
      return run(Type<Relu>{});
    case Activation::gelu_erf:
      return run(Type<GeluErf>{});
  }
}

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
    with_function(call.operation().activation, [&]<class F>(Type<F>) {
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
    with_function(call.operation().activation, [&]<class F>(Type<F>) {
      gated ? packs.launch(call.stream, ActivateBackward<T, F, Gate::before_up>{packs, dy, x, out})
            : packs.launch(call.stream, ActivateBackward<T, F, Gate::none>{packs, dy, x, out});
    });
  });
}

}  // namespace orrery::executor::cuda
