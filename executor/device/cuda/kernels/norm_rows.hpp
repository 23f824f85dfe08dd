#pragma once
// What the forward and backward of norms share: their rows, statistics, and the parts of a row that
// are normalised.

#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/fp8/pack_code.hpp"
#include "executor/device/cuda/kernels/group_code.hpp"
#include "executor/device/cuda/kernels/number_code.hpp"
#include "executor/device/cuda/kernels/rows.hpp"

namespace orrery::executor::cuda {

inline constexpr unsigned most_norm_lanes = 512;

enum class Mean : std::uint8_t { taken_off, kept };

template <class C>
struct Statistics {
  C mean, inverse;
};

/// The row's mean and 1 / sqrt(variance + epsilon); the mean is 0 where none is subtracted (RMS
/// norms).
template <class T, int held>
__device__ Statistics<Compute<T>> statistics_of(const RowValues<T, held>& x, const RowPlace& place,
                                                int n, Mean kind, Compute<T> epsilon) {
  using C = Compute<T>;
  C mean{};
  if (kind == Mean::taken_off) {
    C sum{};
    x.visit([&](int, const auto& pack, int) {  // zeros outside of the row
#pragma unroll
      for (int j = 0; j < RowValues<T>::width; ++j) sum += widen_to<C>(pack.of[j]);
    });
    mean = of_group(sum, place.lanes, Sum{}) / static_cast<C>(n);
  }
  C squares{};
  x.visit([&](int at, const auto& pack, int) {
#pragma unroll
    for (int j = 0; j < RowValues<T>::width; ++j) {
      const C centred = widen_to<C>(pack.of[j]) - mean;
      if (place.has(at + j)) squares += centred * centred;
    }
  });
  const C variance = of_group(squares, place.lanes, Sum{}) / static_cast<C>(n);
  return {mean, C(1) / root(variance + epsilon)};
}

/// The columns that an operation normalises: those of its weight; or the heads that it names, with
/// a weight [2, head_dim], one row for queries and one for keys. Columns after them are copied:
/// values, or what follows a latent in its rows.
struct Part {
  std::int64_t first = 0, heads = 1, n = 0;
};
struct Parts {
  Part of[2];
  int count = 1;
  std::int64_t passed = 0;  // columns after them, which are copied
};
inline Parts parts_of(const Call& call, const View& weight) {
  const std::int64_t columns = call.in(0).shape[2];
  const models::HeadColumns& heads = call.operation().heads();
  if (heads.dim == 0) return {{{0, 1, weight.shape[2]}, {}}, 1, columns - weight.shape[2]};
  const std::int64_t normed = (heads.queries + heads.keys) * heads.dim;
  return {{{0, heads.queries, heads.dim}, {heads.queries * heads.dim, heads.keys, heads.dim}},
          2,
          columns - normed};
}

/// The rows of a part, not shifted, so that a thread sums the same columns of all its rows.
template <class T, class... Operands>
Rows rows_of(const Call& call, const Part& part, const RowShare& share,
             const Operands*... operands) {
  Rows rows;
  rows.columns = call.in(0).shape[2];
  rows.runs = part.heads;
  rows.count = call.in(0).shape[1] * part.heads;
  rows.n = static_cast<int>(part.n);
  rows.lanes = share.lanes;
  rows.aligned =
      on_16_bytes(operands...) && part.n % per_access<T> == 0 && rows.columns % per_access<T> == 0;
  return rows;
}

inline Mean mean_of(const Call& call) {
  return call.kernel.operation->norm() == models::Norm::layer_norm ? Mean::taken_off : Mean::kept;
}

/// Copies the last `passed` columns of every row.
template <class T>
struct Pass {
  const T* from;
  T* to;
  std::int64_t columns, passed;

  __device__ void operator()(std::int64_t i) const {
    const Division of = divided(i, passed);
    const std::int64_t at = (of.quotient + 1) * columns - passed + of.remainder;
    to[at] = from[at];
  }
};

template <class T>
void pass(const Call& call, const Parts& parts) {
  const T* from = call.read<T>(0);
  T* to = call.write<T>(0);
  if (parts.passed == 0 || from == to) return;
  launch_for_each(call.in(0).shape[1] * parts.passed, call.stream,
                  Pass<T>{from, to, call.in(0).shape[2], parts.passed});
}

}  // namespace orrery::executor::cuda
