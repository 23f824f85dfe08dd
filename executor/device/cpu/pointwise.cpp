// Activations and residual sums, element by element.

#include <cmath>

#include "executor/device/activations.hpp"
#include "executor/device/cpu/call.hpp"
#include "executor/device/cpu/exponential.hpp"
#include "executor/device/cpu/zero_rows.hpp"

namespace orrery::executor::cpu {

namespace {

/// The functions of this device for `with_activation`.
struct HostMath {
  template <class T>
  static T exponential(T x) {
    return cpu::exponential(x);
  }
  template <class T>
  static T accurate_exponential(T x) {
    return std::exp(x);
  }
  template <class T>
  static T error_function(T x) {
    return std::erf(x);
  }
  template <class T>
  static T quotient(T a, T b) {
    return a / b;
  }
};

/// Activations in the ring: the square, and under a gate the identity.
template <class T>
struct Square {
  static T value(T x) { return x * x; }
  static T slope(T x) { return x + x; }
};
template <class T>
struct Identity {
  static T value(T x) { return x; }
  static T slope(T) { return T(1); }
};

/// out = f(in), or f(gate) up where the row of `in` is [gate | up]. Rows of zeros are skipped: f(0)
/// = 0 for every f.
template <class F, class T>
void forward(const Call<T>& call, bool gated) {
  const std::int64_t n = call.out(0).shape[2], rows = call.out(0).elements() / n;
  for (std::int64_t i = 0; i < rows; ++i) {
    T* out = call.writes[0] + i * n;
    const std::int64_t width = n * (gated ? 2 : 1);
    const T* gate = call.reads[0] + i * width;
    if (is_zero(gate, width)) {
      std::fill_n(out, n, T{});
      continue;
    }
    for (std::int64_t j = 0; j < n; ++j) out[j] = F::value(gate[j]);
    if (!gated) continue;
    for (std::int64_t j = 0; j < n; ++j) out[j] *= gate[n + j];
  }
}

template <class F, class T>
void backward(const Call<T>& call, bool gated) {
  const std::int64_t n = call.in(0).shape[2], rows = call.in(0).elements() / n;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t width = n * (gated ? 2 : 1);
    const T* dy = call.reads[0] + i * n;
    const T* gate = call.reads[1] + i * width;
    T* out = call.writes[0] + i * width;
    if (is_zero(dy, n)) {
      std::fill_n(out, width, T{});
      continue;
    }
    if (!gated) {
      for (std::int64_t j = 0; j < n; ++j) out[j] = dy[j] * F::slope(gate[j]);
      continue;
    }
    for (std::int64_t j = 0; j < n; ++j) {
      const T up = gate[n + j], g = gate[j];
      out[n + j] = dy[j] * F::value(g);
      out[j] = dy[j] * up * F::slope(g);
    }
  }
}

/// Calls run(Type<F>{}) for the operation's function F.
template <class T, class Run>
void with_function(const Call<T>& call, bool gated, Run run) {
  if constexpr (in_ring<T>) {
    gated ? run(Type<Identity<T>>{}) : run(Type<Square<T>>{});
  } else {
    with_activation<HostMath>(call.operation().activation(), run);
  }
}

template <class T>
void activation(const Call<T>& call) {
  const bool gated = call.in(0).shape[2] == 2 * call.out(0).shape[2];
  with_function(call, gated, [&]<class F>(Type<F>) { forward<F>(call, gated); });
}

template <class T>
void activation_backward(const Call<T>& call) {
  const bool gated = call.in(1).shape[2] == 2 * call.in(0).shape[2];
  with_function(call, gated, [&]<class F>(Type<F>) { backward<F>(call, gated); });
}

/// out = a + b [+ bias, or c], or a + the position table's row of each token [+ the first row of
/// the segment table, as all tokens are in the first segment].
template <class T>
void add(const Call<T>& call) {
  if (call.operation().sequence().merges) return merge(call);
  const std::int64_t rows = call.out(0).shape[1], n = call.out(0).shape[2];
  const Place& place = call.kernel.place;
  const bool table = call.operation().by_position();
  const T* third = call.kernel.reads.size() > 2 ? call.reads[2] : nullptr;
  const std::int64_t third_row = third != nullptr && !table && call.in(2).shape[1] == rows ? n : 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t other = table ? position_of(place, place.first_row + i) : i;
    const T* a = call.reads[0] + i * n;
    const T* b = call.reads[1] + other * n;
    T* out = call.writes[0] + i * n;
    if (third == nullptr) {
      for (std::int64_t j = 0; j < n; ++j) out[j] = a[j] + b[j];
    } else {
      const T* c = third + i * third_row;
      for (std::int64_t j = 0; j < n; ++j) out[j] = a[j] + b[j] + c[j];
    }
  }
}

/// Adds to the gradient of a bias (a sum over rows), or of the position table's rows [and of the
/// segment table's first row].
template <class T>
void add_backward(const Call<T>& call) {
  const std::int64_t rows = call.in(0).shape[1], n = call.in(0).shape[2];
  const Place& place = call.kernel.place;
  const bool table = call.operation().by_position();
  for (std::int64_t i = 0; i < rows; ++i) {
    const T* dy = call.reads[0] + i * n;
    T* sum = call.writes[0] + (table ? position_of(place, place.first_row + i) * n : 0);
    for (std::int64_t j = 0; j < n; ++j) sum[j] += dy[j];
    if (!table || call.kernel.writes.size() < 2) continue;
    for (std::int64_t j = 0; j < n; ++j) call.writes[1][j] += dy[j];
  }
}

}  // namespace

void add_pointwise(KernelTable& table) {
  table.set(models::OpKind::activation, [](const auto& call) { activation(call); });
  table.set(models::OpKind::activation_backward,
            [](const auto& call) { activation_backward(call); });
  table.set(models::OpKind::add, [](const auto& call) { add(call); });
  table.set(models::OpKind::add_backward, [](const auto& call) { add_backward(call); });
}

}  // namespace orrery::executor::cpu
