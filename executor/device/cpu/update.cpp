// The optimizer's kernels over a range of parameters.

#include <cmath>

#include "executor/device/cpu/call.hpp"

namespace orrery::executor::cpu {

namespace {

/// sum += g g; floats are summed in double, since ranges are long.
template <class T>
void squared_norm(const Call<T>& call) {
  const T* gradient = call.reads[0];
  const std::int64_t n = call.in(0).elements();
  if constexpr (in_ring<T>) {
    for (std::int64_t i = 0; i < n; ++i) call.writes[0][0] += gradient[i] * gradient[i];
  } else {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      sum += static_cast<double>(gradient[i]) * static_cast<double>(gradient[i]);
    }
    call.writes[0][0] += static_cast<T>(sum);
  }
}

/// With g the clipped gradient:
///   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g g
///   w -= rate (m / (1 - b1^step) / (sqrt(v / (1 - b2^step)) + epsilon) + decay w)
/// Afterwards the gradient is set to 0, and a working copy in another format, if any, to the new
/// weight. In the ring w -= g, m += g, v += g g.
/// Source  Loshchilov & Hutter 2019, arXiv 1711.05101
template <class T>
void adam(const Call<T>& call) {
  const AdamStep& numbers = call.kernel.adam;
  T* gradient = call.writes[3];
  T* weight = call.writes[0];
  T* first = call.writes[1];
  T* second = call.writes[2];
  const std::int64_t n = call.in(0).elements();
  if constexpr (in_ring<T>) {
    for (std::int64_t i = 0; i < n; ++i) {
      first[i] += gradient[i];
      second[i] += gradient[i] * gradient[i];
      weight[i] -= gradient[i];
    }
  } else {
    const auto step = static_cast<double>(numbers.step);
    const auto b1 = static_cast<T>(numbers.beta1), b2 = static_cast<T>(numbers.beta2);
    const auto rest1 = static_cast<T>(1 - numbers.beta1), rest2 = static_cast<T>(1 - numbers.beta2);
    const auto rate = static_cast<T>(numbers.learning_rate / (1 - std::pow(numbers.beta1, step)));
    const auto root = static_cast<T>(1 / std::sqrt(1 - std::pow(numbers.beta2, step)));
    const auto keep = static_cast<T>(1 - numbers.learning_rate * numbers.weight_decay);
    const auto epsilon = static_cast<T>(numbers.epsilon);
    const auto scale = static_cast<T>(numbers.gradient_scale);
    for (std::int64_t i = 0; i < n; ++i) {
      const T g = gradient[i] * scale;
      first[i] = b1 * first[i] + rest1 * g;
      second[i] = b2 * second[i] + rest2 * g * g;
      weight[i] = weight[i] * keep - rate * first[i] / (std::sqrt(second[i]) * root + epsilon);
    }
  }
  for (std::int64_t i = 0; i < n; ++i) gradient[i] = T{};
  if (call.kernel.writes.size() > 4) {
    for (std::int64_t i = 0; i < n; ++i) call.writes[4][i] = weight[i];
  }
}

}  // namespace

void add_updates(KernelTable& table) {
  table.set(models::OpKind::squared_norm, [](const auto& call) { squared_norm(call); });
  table.set(models::OpKind::adam, [](const auto& call) { adam(call); });
}

}  // namespace orrery::executor::cpu
