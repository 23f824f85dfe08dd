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
};

/// y = (x - mean) / sqrt(variance + epsilon) weight [+ bias]; RMS norms take 0 for the mean. In the
/// ring y = x weight [+ bias].
template <class T>
void forward_row(const NormRow<T>& row, const T* bias, Norm kind, double epsilon) {
  if constexpr (in_ring<T>) {
    for (std::int64_t j = 0; j < row.n; ++j) row.out[j] = row.x[j] * row.weight[j];
  } else {
    const Statistics<T> of = statistics_of(row.x, row.n, kind, epsilon);
    for (std::int64_t j = 0; j < row.n; ++j) {
      row.out[j] = (row.x[j] - of.mean) * of.inverse * row.weight[j];
    }
  }
  if (bias == nullptr) return;
  for (std::int64_t j = 0; j < row.n; ++j) row.out[j] += bias[j];
}

/// With g = dy weight and z the normalised x:
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
      const T g = row.gradient[j] * row.weight[j];
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
    T dx = (dy * row.weight[j] - mean_g - z * mean_gz) * of.inverse;
    if (row.residual != nullptr) dx += row.residual[j];
    row.out[j] = dx;
  }
}

/// Normalises whole rows; or the heads that the operation names, with a weight [2, head_dim], one
/// row for queries and one for keys. Values are copied, and so are columns of whole rows beyond the
/// weight.
template <class T>
void norm(const Call<T>& call) {
  const std::int64_t rows = call.in(0).shape[1], n = call.in(0).shape[2];
  const models::Operation& op = call.operation();
  const Norm kind = op.norm;
  const models::HeadColumns& heads = op.heads;
  const T* bias = call.kernel.reads.size() > 2 ? call.reads[2] : nullptr;
  for (std::int64_t i = 0; i < rows; ++i) {
    NormRow<T> row;
    row.x = call.reads[0] + i * n;
    row.weight = call.reads[1];
    row.out = call.writes[0] + i * n;
    row.n = call.in(1).shape[2];
    if (heads.dim == 0) {
      forward_row(row, bias, kind, op.epsilon);
      std::copy(row.x + row.n, row.x + n, row.out + row.n);
      continue;
    }
    row.n = heads.dim;
    for (std::int64_t h = 0; h < heads.queries + heads.keys; ++h) {
      if (h == heads.queries) row.weight += heads.dim;
      forward_row<T>(row, nullptr, kind, op.epsilon);
      row.x += heads.dim;
      row.out += heads.dim;
    }
    std::copy(row.x, row.x + heads.keys * heads.dim, row.out);
  }
}

template <class T>
void norm_backward(const Call<T>& call) {
  const std::int64_t rows = call.in(0).shape[1], n = call.in(0).shape[2];
  const models::Operation& op = call.operation();
  const Norm kind = op.norm;
  const models::HeadColumns& heads = op.heads;
  for (std::int64_t i = 0; i < rows; ++i) {
    NormRow<T> row;
    row.gradient = call.reads[0] + i * n;
    row.x = call.reads[1] + i * n;
    row.weight = call.reads[2];
    row.out = call.writes[0] + i * n;
    row.weight_gradient = call.writes[1];
    row.n = call.in(2).shape[2];
    if (heads.dim == 0) {
      if (call.kernel.reads.size() > 3) row.residual = call.reads[3] + i * n;
      if (call.kernel.writes.size() > 2) row.bias_gradient = call.writes[2];
      backward_row(row, kind, op.epsilon);
      if (n > row.n) std::copy(row.gradient + row.n, row.gradient + n, row.out + row.n);
      continue;
    }
    row.n = heads.dim;
    for (std::int64_t h = 0; h < heads.queries + heads.keys; ++h) {
      if (h == heads.queries) {
        row.weight += heads.dim;
        if (row.weight_gradient != nullptr) row.weight_gradient += heads.dim;
      }
      backward_row(row, kind, op.epsilon);
      row.gradient += heads.dim;
      row.x += heads.dim;
      row.out += heads.dim;
    }
    if (row.out != row.gradient) {
      std::copy(row.gradient, row.gradient + heads.keys * heads.dim, row.out);
    }
  }
}

}  // namespace

void add_norms(KernelTable& table) {
  table.set(models::OpKind::norm, [](const auto& call) { norm(call); });
  table.set(models::OpKind::norm_backward, [](const auto& call) { norm_backward(call); });
}

}  // namespace orrery::executor::cpu
