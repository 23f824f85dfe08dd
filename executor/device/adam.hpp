#pragma once
// One AdamW step of one parameter, on every device, whatever format its moments are stored in.

#include <cmath>

#include "executor/device/anywhere.hpp"
#include "executor/device/device.hpp"

namespace orrery::executor {

/// The constants of an AdamStep as a kernel needs them.
template <class S>
struct AdamNumbers {
  S b1, b2, rest1, rest2, rate, root, keep, epsilon, scale;

  explicit AdamNumbers(const AdamStep& of)
      : b1{static_cast<S>(of.beta1)},
        b2{static_cast<S>(of.beta2)},
        rest1{static_cast<S>(1 - of.beta1)},
        rest2{static_cast<S>(1 - of.beta2)},
        rate{static_cast<S>(of.learning_rate / (1 - power(of.beta1, of.step)))},
        root{static_cast<S>(1 / std::sqrt(1 - power(of.beta2, of.step)))},
        keep{static_cast<S>(1 - of.learning_rate * of.weight_decay)},
        epsilon{static_cast<S>(of.epsilon)},
        scale{static_cast<S>(of.gradient_scale)} {}

 private:
  static double power(double base, std::int64_t step) {
    return std::pow(base, static_cast<double>(step));
  }
};

/// With g the clipped gradient:
///   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g g
///   w -= rate (m / (1 - b1^step) / (sqrt(v / (1 - b2^step)) + epsilon) + decay w)
/// Source  Loshchilov & Hutter 2019, arXiv 1711.05101
template <class S>
ORRERY_IN_KERNELS void adam_step(const AdamNumbers<S>& of, S slope, S& w, S& m, S& v) {
  m = of.b1 * m + of.rest1 * slope;
  v = of.b2 * v + of.rest2 * slope * slope;
  w = w * of.keep - of.rate * m / (std::sqrt(v) * of.root + of.epsilon);
}

}  // namespace orrery::executor
