#pragma once
// Activation functions and their derivatives, the same on every device. `Math` has the device's own
// functions of numbers: `exponential`, `accurate_exponential`, `error_function`, `quotient`.

#include "executor/device/anywhere.hpp"
#include "executor/device/formats.hpp"

namespace orrery::executor {

/// 1 / (1 + exp(-x))
template <class Math, class C>
ORRERY_IN_KERNELS C logistic(C x) {
  return Math::quotient(C(1), C(1) + Math::exponential(-x));
}

/// x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3)
/// Source  Hendrycks & Gimpel 2016, arXiv 1606.08415, the approximation that GPT-2 uses
template <class Math>
struct Gelu {
  static constexpr double root = 0.79788456080286535588, cubic = 0.044715;

  /// tanh(u) = 1 - 2 / (exp(2u) + 1)
  template <class C>
  ORRERY_IN_KERNELS static C tangent(C x) {
    const C u = C(root) * (x + C(cubic) * x * x * x);
    return C(1) - Math::quotient(C(2), Math::exponential(C(2) * u) + C(1));
  }
  template <class C>
  ORRERY_IN_KERNELS static C value(C x) {
    return C(0.5) * x * (C(1) + tangent(x));
  }
  template <class C>
  ORRERY_IN_KERNELS static C slope(C x) {
    const C t = tangent(x);
    const C du = C(root) * (C(1) + C(3) * C(cubic) * x * x);
    return C(0.5) * (C(1) + t) + C(0.5) * x * (C(1) - t * t) * du;
  }
};

/// x P(x), P the integral of the normal density p up to x; its slope is P(x) + x p(x).
/// Source  Hendrycks & Gimpel 2016, arXiv 1606.08415
template <class Math>
struct GeluErf {
  static constexpr double root_half = 0.70710678118654752440, density = 0.39894228040143267794;

  template <class C>
  ORRERY_IN_KERNELS static C integral(C x) {
    return C(0.5) * (C(1) + Math::error_function(x * C(root_half)));
  }
  template <class C>
  ORRERY_IN_KERNELS static C value(C x) {
    return x * integral(x);
  }
  template <class C>
  ORRERY_IN_KERNELS static C slope(C x) {
    return integral(x) + x * C(density) * Math::accurate_exponential(C(-0.5) * x * x);
  }
};

template <class Math>
struct Silu {
  template <class C>
  ORRERY_IN_KERNELS static C value(C x) {
    return x * logistic<Math>(x);
  }
  template <class C>
  ORRERY_IN_KERNELS static C slope(C x) {
    const C s = logistic<Math>(x);
    return s * (C(1) + x * (C(1) - s));
  }
};

struct Relu {
  template <class C>
  ORRERY_IN_KERNELS static C value(C x) {
    return x > C{} ? x : C{};
  }
  template <class C>
  ORRERY_IN_KERNELS static C slope(C x) {
    return x > C{} ? C(1) : C{};
  }
};

struct SquaredRelu {
  template <class C>
  ORRERY_IN_KERNELS static C value(C x) {
    return Relu::value(x) * Relu::value(x);
  }
  template <class C>
  ORRERY_IN_KERNELS static C slope(C x) {
    return C(2) * Relu::value(x);
  }
};

/// Calls run(Type<F>{}) for an activation function F.
template <class Math, class Run>
void with_activation(models::Activation activation, Run run) {
  switch (activation) {
    case models::Activation::gelu:
      return run(Type<Gelu<Math>>{});
    case models::Activation::silu:
      return run(Type<Silu<Math>>{});
    case models::Activation::relu:
      return run(Type<Relu>{});
    case models::Activation::gelu_erf:
      return run(Type<GeluErf<Math>>{});
    case models::Activation::relu2:
      return run(Type<SquaredRelu>{});
  }
}

}  // namespace orrery::executor
