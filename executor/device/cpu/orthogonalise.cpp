// PowerSGD's orthogonal basis, by Gram-Schmidt.

#include <cmath>
#include <limits>

#include "executor/device/cpu/call.hpp"
#include "sim/errors.hpp"

namespace orrery::executor::cpu {

namespace {

/// Orthonormalises a matrix's columns, one after another.
template <class T>
class GramSchmidt {
 public:
  GramSchmidt(T* matrix, std::int64_t rows, std::int64_t columns)
      : matrix_{matrix}, rows_{rows}, columns_{columns} {}

  void run() {
    for (std::int64_t j = 0; j < columns_; ++j) {
      const T before = norm(j);
      remove_others(j);
      // Only rounding errors are left of a column that depends on those before it.
      const T rounding = before * std::sqrt(static_cast<T>(rows_)) * 8;
      if (norm(j) <= rounding * std::numeric_limits<T>::epsilon()) replace(j);
      const T length = norm(j);
      for (std::int64_t i = 0; i < rows_; ++i) at(i, j) /= length;
    }
  }

 private:
  T& at(std::int64_t i, std::int64_t j) { return matrix_[i * columns_ + j]; }

  T product(std::int64_t j, std::int64_t k) {
    T sum{};
    for (std::int64_t i = 0; i < rows_; ++i) sum += at(i, j) * at(i, k);
    return sum;
  }
  T norm(std::int64_t j) { return std::sqrt(product(j, j)); }

  /// Subtracts the projections on the columns before it; twice, after which no rounding is left to
  /// remove.
  /// Source  Giraud, Langou & Rozloznik 2005, "The loss of orthogonality in the Gram-Schmidt
  ///         orthogonalization process"
  void remove_others(std::int64_t j) {
    for (int time = 0; time < 2; ++time) {
      for (std::int64_t k = 0; k < j; ++k) {
        const T shared = product(j, k);
        for (std::int64_t i = 0; i < rows_; ++i) at(i, j) -= shared * at(i, k);
      }
    }
  }

  /// Replaces a column by the first axis that the columns before it do not span. The part of an
  /// axis outside their span has a squared length that is at least 1 / rows on average over all
  /// axes.
  void replace(std::int64_t j) {
    const T least = std::sqrt(T{0.5} / static_cast<T>(rows_));
    for (std::int64_t axis = 0; axis < rows_; ++axis) {
      for (std::int64_t i = 0; i < rows_; ++i) at(i, j) = i == axis ? T{1} : T{0};
      remove_others(j);
      if (norm(j) > least) return;
    }
    throw ContractError{"a basis has more columns than rows"};
  }

  T* matrix_;
  std::int64_t rows_, columns_;
};

/// Each column becomes a unit vector orthogonal to those before it. A column that depends on them,
/// such as one of zeros, is replaced by another direction, so that no column of a factor is lost
/// for good.
/// Source  Vogels et al. 2019, arXiv 1905.13727, algorithm 1
template <class T>
void orthogonalise(const Call<T>& call) {
  if constexpr (in_ring<T>) {
    throw ContractError{"integers have no orthogonal basis"};
  } else {
    const View& matrix = call.out(0);
    GramSchmidt<T>{call.writes[0], matrix.shape[1], matrix.shape[2]}.run();
  }
}

}  // namespace

void add_orthogonalise(KernelTable& table) {
  table.set(models::OpKind::orthogonalise, [](const auto& call) { orthogonalise(call); });
}

}  // namespace orrery::executor::cpu
