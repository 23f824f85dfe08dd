// The optimizer's kernels over a range of parameters.

#include "executor/device/adam.hpp"
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

/// One step (adam.hpp) of every parameter. Afterwards the gradient is set to 0, and a working copy
/// in another format, if any, to the new weight. In the ring w -= g, m += g, v += g g. Source
/// Loshchilov & Hutter 2019, arXiv 1711.05101
template <class T>
void adam(const Call<T>& call) {
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
    const AdamNumbers<T> numbers{call.kernel.adam};
    for (std::int64_t i = 0; i < n; ++i) {
      adam_step(numbers, gradient[i] * numbers.scale, weight[i], first[i], second[i]);
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
