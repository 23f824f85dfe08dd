// Layer norms and RMS norms, of whole rows or of each query and key head.

#include <algorithm>
#include <cmath>

#include "executor/device/cpu/call.hpp"

namespace orrery::executor::cpu {

namespace {

using models::Norm;

/// A row's mean and 1 / deviation; it is normalised as (x - mean) / deviation.
template <class T>
struct Statistics {
  T mean{}, inverse{};
};

template <class T>
Statistics<T> statistics_of(const T* x, std::int64_t n, Norm kind, double epsilon) {
  T sum{};
  if (kind == Norm::layer_norm) {
    for (std::int64_t j = 0; j < n; ++j) sum += x[j];
  }
  const T mean = sum / static_cast<T>(n);
  T squares{};
  for (std::int64_t j = 0; j < n; ++j) squares += (x[j] - mean) * (x[j] - mean);
  const T variance = squares / static_cast<T>(n);
  return {mean, T(1) / std::sqrt(variance + static_cast<T>(epsilon))};
}

/// Operands of one row, or of one head of a row.
template <class T>
struct NormRow {
  const T* x = nullptr;
  const T* gradient = nullptr;
  const T* weight = nullptr;
  T* out = nullptr;
  T* weight_gradient = nullptr;
  T* bias_gradient = nullptr;
  const T* residual = nullptr;
  std::int64_t n = 0;
  T offset{};  // added to the weight

  T scale(std::int64_t j) const { return weight[j] + offset; }
};

/// y = (x - mean) / sqrt(variance + epsilon) (weight + offset) [+ bias]; RMS norms take 0 for the
/// mean. In the ring y = x (weight + offset) [+ bias].
template <class T>
void forward_row(const NormRow<T>& row, const T* bias, Norm kind, double epsilon) {
  if constexpr (in_ring<T>) {
    for (std::int64_t j = 0; j < row.n; ++j) row.out[j] = row.x[j] * row.scale(j);
  } else {
    const Statistics<T> of = statistics_of(row.x, row.n, kind, epsilon);
    for (std::int64_t j = 0; j < row.n; ++j) {
      row.out[j] = (row.x[j] - of.mean) * of.inverse * row.scale(j);
    }
  }
  if (bias == nullptr) return;
  for (std::int64_t j = 0; j < row.n; ++j) row.out[j] += bias[j];
}

/// With g = dy (weight + offset) and z the normalised x:
///   dx = (g - mean(g) - z mean(g z)) / deviation [+ residual];  dweight += dy z;  dbias += dy
/// RMS norms have no mean(g).
/// Source  derivative of the above; Ba et al. 2016, arXiv 1607.06450; Zhang & Sennrich 2019
template <class T>
void backward_row(const NormRow<T>& row, Norm kind, double epsilon) {
  Statistics<T> of{T{}, T(1)};
  T mean_g{}, mean_gz{};
  if constexpr (!in_ring<T>) {
    of = statistics_of(row.x, row.n, kind, epsilon);
    for (std::int64_t j = 0; j < row.n; ++j) {
      const T g = row.gradient[j] * row.scale(j);
      if (kind == Norm::layer_norm) mean_g += g;
      mean_gz += g * (row.x[j] - of.mean) * of.inverse;
    }
    mean_g /= static_cast<T>(row.n);
    mean_gz /= static_cast<T>(row.n);
  }
  if (row.bias_gradient != nullptr) {
    for (std::int64_t j = 0; j < row.n; ++j) row.bias_gradient[j] += row.gradient[j];
  }
  for (std::int64_t j = 0; j < row.n; ++j) {
    const T z = (row.x[j] - of.mean) * of.inverse;
    const T dy = row.gradient[j];
    if (row.weight_gradient != nullptr) row.weight_gradient[j] += dy * z;  // null: frozen
    T dx = (dy * row.scale(j) - mean_g - z * mean_gz) * of.inverse;
    if (row.residual != nullptr) dx += row.residual[j];
    row.out[j] = dx;
  }
}

/// Calls visit(first element, elements, first weight) for what an operation normalises: whole rows,
/// or the heads that it names, with a weight [2, head_dim], one row for queries and one for keys.
/// Other columns are copied: gates, values, or what follows a latent in its rows.
template <class T, class Visit>
void for_each_normed(const Call<T>& call, const View& weight, Visit visit) {
  const std::int64_t rows = call.in(0).shape[1], columns = call.in(0).shape[2];
  const models::HeadColumns& heads = call.operation().heads();
  const bool whole = heads.dim == 0;
  const std::int64_t n = whole ? weight.shape[2] : heads.dim;
  const std::int64_t parts = whole ? 1 : heads.queries + heads.keys;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t begin = row * columns, after = begin + (whole ? n : heads.column(parts));
    for (std::int64_t p = 0; p < parts; ++p) {
      visit(begin + (whole ? 0 : heads.column(p)), n, whole || p < heads.queries ? 0 : n);
    }
    if (call.reads[0] == call.writes[0]) continue;
    for (std::int64_t p = 0; heads.gated && p < heads.queries; ++p) {
      const std::int64_t gate = begin + heads.column(p) + n;
      std::copy_n(call.reads[0] + gate, n, call.writes[0] + gate);
    }
    std::copy_n(call.reads[0] + after, begin + columns - after, call.writes[0] + after);
  }
}

template <class T>
void norm(const Call<T>& call) {
  const models::Operation& op = call.operation();
  const T* bias = call.kernel.reads.size() > 2 ? call.reads[2] : nullptr;
  for_each_normed(call, call.in(1), [&](std::int64_t at, std::int64_t n, std::int64_t weight) {
    const NormRow<T> row{.x = call.reads[0] + at,
                         .weight = call.reads[1] + weight,
                         .out = call.writes[0] + at,
                         .n = n,
                         .offset = static_cast<T>(op.offset())};
    forward_row(row, bias, op.norm(), op.epsilon());
  });
}

template <class T>
void norm_backward(const Call<T>& call) {
  const models::Operation& op = call.operation();
  for_each_normed(call, call.in(2), [&](std::int64_t at, std::int64_t n, std::int64_t weight) {
    NormRow<T> row{.x = call.reads[1] + at,
                   .gradient = call.reads[0] + at,
                   .weight = call.reads[2] + weight,
                   .out = call.writes[0] + at,
                   .n = n,
                   .offset = static_cast<T>(op.offset())};
    if (call.writes[1] != nullptr) row.weight_gradient = call.writes[1] + weight;
    if (call.kernel.writes.size() > 2) row.bias_gradient = call.writes[2];
    if (call.kernel.reads.size() > 3) row.residual = call.reads[3] + at;
    backward_row(row, op.norm(), op.epsilon());
  });
}

}  // namespace

void add_norms(KernelTable& table) {
  table.set(models::OpKind::norm, [](const auto& call) { norm(call); });
  table.set(models::OpKind::norm_backward, [](const auto& call) { norm_backward(call); });
}

}  // namespace orrery::executor::cpu
