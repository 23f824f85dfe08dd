// Activations and residual sums, element by element.

#include <algorithm>
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

/// 1 / (1 + exp(-x)) of a gate, and its slope; in the ring the gate itself.
template <class T>
struct Sigmoid {
  static T value(T x) {
    if constexpr (in_ring<T>) {
      return x;
    } else {
      return logistic<HostMath>(x);
    }
  }
  static T slope(T x) {
    if constexpr (in_ring<T>) {
      return T(1);
    } else {
      const T s = value(x);
      return s * (T(1) - s);
    }
  }
};

/// One gate and value of GPT-OSS's MLP: with g = min(gate, limit) and u the value within +-limit,
///   (u + 1) g sigmoid(1.702 g)
/// and the factors of its gradient in both. In the ring (u + 1) g.
/// Source  OpenAI, gpt-oss, torch/model.py (swiglu); GptOssExperts of the transformers library
template <class T>
struct Clamped {
  T active{}, of_gate{}, of_value{};

  Clamped(T gate, T up, double bound) {
    if constexpr (in_ring<T>) {
      active = (up + 1) * gate;
      of_gate = up + 1;
      of_value = gate;
    } else {
      const auto limit = static_cast<T>(bound), alpha = static_cast<T>(1.702);
      const T g = std::min(gate, limit), u = std::clamp(up, -limit, limit);
      const T s = Sigmoid<T>::value(alpha * g);
      active = (u + T(1)) * g * s;
      of_gate = gate > limit ? T{} : (u + T(1)) * (s + g * alpha * s * (T(1) - s));
      of_value = u != up ? T{} : g * s;
    }
  }
};

/// Calls visit(row of `narrow`, row of `wide`) for rows [n] and [gate | value] of 2n columns.
template <class T, class Visit>
void for_gated_rows(const View& narrow, Visit visit) {
  const std::int64_t n = narrow.shape[2], rows = narrow.elements() / n;
  for (std::int64_t i = 0; i < rows; ++i) visit(i * n, i * 2 * n, n);
}

template <class T>
void clamped(const Call<T>& call) {
  for_gated_rows<T>(call.out(0), [&](std::int64_t at, std::int64_t wide, std::int64_t n) {
    const T* gate = call.reads[0] + wide;
    for (std::int64_t j = 0; j < n; ++j) {
      call.writes[0][at + j] = Clamped<T>{gate[j], gate[n + j], call.operation().clamp()}.active;
    }
  });
}

template <class T>
void clamped_backward(const Call<T>& call) {
  for_gated_rows<T>(call.in(0), [&](std::int64_t at, std::int64_t wide, std::int64_t n) {
    const T* gate = call.reads[1] + wide;
    T* out = call.writes[0] + wide;
    for (std::int64_t j = 0; j < n; ++j) {
      const Clamped<T> of{gate[j], gate[n + j], call.operation().clamp()};
      const T dy = call.reads[0][at + j];
      out[j] = dy * of.of_gate;
      out[n + j] = dy * of.of_value;
    }
  });
}

/// Calls visit(column of the output, column of its gate) for every head's output in every row.
template <class T, class Visit>
void for_gated_heads(const Call<T>& call, const View& outputs, const View& gates, Visit visit) {
  const models::HeadColumns& of = call.operation().heads();
  for (std::int64_t row = 0; row < outputs.shape[1]; ++row) {
    for (std::int64_t h = 0; h < of.queries; ++h) {
      const std::int64_t out = row * outputs.shape[2] + h * of.dim;
      const std::int64_t gate = row * gates.shape[2] + of.column(h) + of.dim;
      for (std::int64_t j = 0; j < of.dim; ++j) visit(out + j, gate + j);
    }
  }
}

/// out = x sigmoid(gate)
template <class T>
void gated_heads(const Call<T>& call) {
  for_gated_heads(call, call.in(0), call.in(1), [&](std::int64_t at, std::int64_t gate) {
    call.writes[0][at] = call.reads[0][at] * Sigmoid<T>::value(call.reads[1][gate]);
  });
}

/// dx = dy sigmoid(gate);  dgate = dy x sigmoid'(gate)
template <class T>
void gated_heads_backward(const Call<T>& call) {
  for_gated_heads(call, call.in(0), call.in(2), [&](std::int64_t at, std::int64_t gate) {
    const T dy = call.reads[0][at], g = call.reads[2][gate];
    call.writes[1][gate] = dy * call.reads[1][at] * Sigmoid<T>::slope(g);
    call.writes[0][at] = dy * Sigmoid<T>::value(g);
  });
}

/// The same with one gate for a row: dgate = sigmoid'(gate) sum(dy x).
template <class T>
void gated_rows_backward(const Call<T>& call) {
  const std::int64_t rows = call.in(0).shape[1], n = call.in(0).shape[2];
  for (std::int64_t i = 0; i < rows; ++i) {
    const T gate = call.reads[2][i], factor = Sigmoid<T>::value(gate);
    T sum{};
    for (std::int64_t j = i * n; j < (i + 1) * n; ++j) {
      sum += call.reads[0][j] * call.reads[1][j];
      call.writes[0][j] = call.reads[0][j] * factor;
    }
    call.writes[1][i] = sum * Sigmoid<T>::slope(gate);
  }
}

template <class T>
void activation(const Call<T>& call) {
  if (call.operation().gates() == models::GatedColumns::heads) return gated_heads(call);
  if (call.operation().clamp() > 0) return clamped(call);
  const bool gated = call.in(0).shape[2] == 2 * call.out(0).shape[2];
  with_function(call, gated, [&]<class F>(Type<F>) { forward<F>(call, gated); });
}

template <class T>
void activation_backward(const Call<T>& call) {
  switch (call.operation().gates()) {
    case models::GatedColumns::heads:
      return gated_heads_backward(call);
    case models::GatedColumns::rows:
      return gated_rows_backward(call);
    case models::GatedColumns::none:
      break;
  }
  if (call.operation().clamp() > 0) return clamped_backward(call);
  const bool gated = call.in(1).shape[2] == 2 * call.in(0).shape[2];
  with_function(call, gated, [&]<class F>(Type<F>) { backward<F>(call, gated); });
}

/// out = a + b sigmoid(gate), a gate for each row.
template <class T>
void add_gated(const Call<T>& call) {
  const std::int64_t rows = call.out(0).shape[1], n = call.out(0).shape[2];
  for (std::int64_t i = 0; i < rows; ++i) {
    const T factor = Sigmoid<T>::value(call.reads[2][i]);
    for (std::int64_t j = i * n; j < (i + 1) * n; ++j) {
      call.writes[0][j] = call.reads[0][j] + call.reads[1][j] * factor;
    }
  }
}

/// Adds to some columns of each row.
template <class T>
void add_columns(const Call<T>& call) {
  const std::int64_t wide = call.out(0).shape[2], n = call.in(1).shape[2];
  const std::int64_t rows = call.in(1).elements() / n;
  T* const to = call.writes[0] + *call.operation().first_column();
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < n; ++j) to[i * wide + j] += call.reads[1][i * n + j];
  }
}

/// out = a + b [+ bias, or c], or a + the position table's row of each token [+ the first row of
/// the segment table, as all tokens are in the first segment].
template <class T>
void add(const Call<T>& call) {
  if (call.operation().sequence().merges) return merge(call);
  if (call.operation().gates_row()) return add_gated(call);
  if (call.operation().first_column()) return add_columns(call);
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
