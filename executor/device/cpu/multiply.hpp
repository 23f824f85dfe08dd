#pragma once
// One matrix product on the CPU: by BLAS where there is one for the type, else by plain loops.

#include <algorithm>
#include <type_traits>

#include "executor/device/cpu/blas.hpp"
#include "models/program/operation.hpp"

namespace orrery::executor::cpu {

/// Matrices of c = a b or c += a b, row-major; `row_*` counts elements from one row to the next.
template <class T>
struct Matrices {
  const T* a;
  const T* b;
  T* c;
  std::int64_t row_a, row_b, row_c;
};

/// Fallback for types that BLAS lacks and for builds without BLAS.
template <class T>
void multiply_by_loops(const models::GemmShape& s, const Matrices<T>& x) {
  const std::int64_t step_b = s.transpose_b ? x.row_b : 1;
  for (std::int64_t i = 0; i < s.m; ++i) {
    T* c = x.c + i * x.row_c;
    if (!s.accumulate) std::fill(c, c + s.n, T{});
    for (std::int64_t k = 0; k < s.k; ++k) {
      const T of_a = s.transpose_a ? x.a[k * x.row_a + i] : x.a[i * x.row_a + k];
      const T a = s.subtract ? T{} - of_a : of_a;
      const T* b = s.transpose_b ? x.b + k : x.b + k * x.row_b;
      if (step_b == 1) {
        for (std::int64_t j = 0; j < s.n; ++j) c[j] += a * b[j];
      } else {
        for (std::int64_t j = 0; j < s.n; ++j) c[j] += a * b[j * step_b];
      }
    }
  }
}

#ifdef ORRERY_OPENBLAS
template <class T>
void multiply(const models::GemmShape& s, const Matrices<T>& x) {
  const auto transposed = [](bool yes) { return yes ? CblasTrans : CblasNoTrans; };
  const auto size = [](std::int64_t n) { return static_cast<blasint>(n); };
  if constexpr (std::is_same_v<T, float>) {
    blas().sgemm(CblasRowMajor, transposed(s.transpose_a), transposed(s.transpose_b), size(s.m),
                 size(s.n), size(s.k), s.subtract ? -1.0F : 1.0F, x.a, size(x.row_a), x.b,
                 size(x.row_b), s.accumulate ? 1.0F : 0.0F, x.c, size(x.row_c));
  } else if constexpr (std::is_same_v<T, double>) {
    blas().dgemm(CblasRowMajor, transposed(s.transpose_a), transposed(s.transpose_b), size(s.m),
                 size(s.n), size(s.k), s.subtract ? -1.0 : 1.0, x.a, size(x.row_a), x.b,
                 size(x.row_b), s.accumulate ? 1.0 : 0.0, x.c, size(x.row_c));
  } else {
    multiply_by_loops(s, x);
  }
}
#else
template <class T>
void multiply(const models::GemmShape& s, const Matrices<T>& x) {
  multiply_by_loops(s, x);
}
#endif

}  // namespace orrery::executor::cpu
