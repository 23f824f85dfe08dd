// PowerSGD's orthogonal basis, by Gram-Schmidt in one block, whose threads have rows each.

#include <cmath>
#include <limits>

#include "executor/device/cuda/kernels/call.hpp"
#include "executor/device/cuda/kernels/group_code.hpp"
#include "executor/device/cuda/kernels/launch.hpp"

namespace orrery::executor::cuda {

namespace {

/// A matrix's columns. Every thread calls every function, and each touches only its own rows.
template <class T>
struct BasisColumns {
  T* matrix;
  std::int64_t rows, columns;

  template <class F>
  __device__ void for_rows(F f) const {
    for (std::int64_t i = threadIdx.x; i < rows; i += block_threads) f(matrix + i * columns);
  }
  __device__ T product(std::int64_t j, std::int64_t k) const {
    T sum{};
    for_rows([&](const T* row) { sum += row[j] * row[k]; });
    return of_group(sum, block_threads, Sum{});
  }
  __device__ T norm(std::int64_t j) const { return sqrt(product(j, j)); }

  /// Subtracts the projections on the columns before it; twice, after which no rounding is left to
  /// remove.
  __device__ void remove_others(std::int64_t j) const {
    for (int time = 0; time < 2; ++time) {
      for (std::int64_t k = 0; k < j; ++k) {
        const T shared = product(j, k);
        for_rows([&](T* row) { row[j] -= shared * row[k]; });
      }
    }
  }

  /// Replaces a column by the first axis that the columns before it do not span, of which there is
  /// one.
  __device__ void replace(std::int64_t j) const {
    const T least = sqrt(T{0.5} / static_cast<T>(rows));
    for (std::int64_t axis = 0; axis < rows; ++axis) {
      for_rows([&](T* row) { row[j] = row == matrix + axis * columns ? T{1} : T{0}; });
      remove_others(j);
      if (norm(j) > least) return;
    }
  }
};

template <class T>
__global__ void __launch_bounds__(block_threads) gram_schmidt(BasisColumns<T> of, T rounding) {
  for (std::int64_t j = 0; j < of.columns; ++j) {
    const T before = of.norm(j);
    of.remove_others(j);
    if (of.norm(j) <= before * rounding) of.replace(j);
    const T length = of.norm(j);
    of.for_rows([&](T* row) { row[j] /= length; });
  }
}

}  // namespace

/// Each column becomes a unit vector orthogonal to those before it; one that depends on them is
/// replaced by another direction.
/// Source  Vogels et al. 2019, arXiv 1905.13727, algorithm 1
void orthogonalise(const Call& call) {
  const View& matrix = call.out(0);
  const std::int64_t rows = matrix.shape[1], columns = matrix.shape[2];
  ensure(columns <= rows, "a basis has more columns than rows");
  with_format(matrix.dtype, [&]<class T>(Type<T>) {
    if constexpr (sizeof(T) >= 4) {
      const T rounding = 8 * std::sqrt(static_cast<T>(rows)) * std::numeric_limits<T>::epsilon();
      launch(gram_schmidt<T>, {1, block_threads}, call.stream,
             BasisColumns<T>{call.write<T>(0), rows, columns}, rounding);
    } else {
      throw ContractError{"a GPU kernel was given a format that it refuses"};
    }
  });
}

}  // namespace orrery::executor::cuda
