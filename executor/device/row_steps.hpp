#pragma once
// Where the rows of a GEMM's matrices are in its operands. Columns that follow a latent in its rows
// (latent attention) are not part of the matrix.

#include <algorithm>
#include <cstdint>

#include "executor/device/device.hpp"

namespace orrery::executor {

/// Elements from one row to the next of a GEMM's first matrix and of its result.
struct RowSteps {
  std::int64_t a = 0, c = 0;

  explicit RowSteps(const Kernel& gemm) {
    const models::GemmShape& s = gemm.operation->gemm();
    a = s.transpose_a ? leading_dimension(gemm.reads[0], s.k, s.m)
                      : leading_dimension(gemm.reads[0], s.m, s.k);
    c = leading_dimension(gemm.writes[0], s.m, s.n);
  }

 private:
  static std::int64_t leading_dimension(const View& view, std::int64_t rows, std::int64_t columns) {
    return view.shape[1] == rows ? std::max(view.shape[2], columns) : columns;
  }
};

/// Are the rows of a GEMM's result longer than its own columns? Then reads[2] is no bias, but what
/// the columns after them become.
inline bool has_columns_after(const Kernel& gemm) {
  return gemm.operation->kind == models::OpKind::gemm &&
         RowSteps{gemm}.c > gemm.operation->gemm().n;
}

}  // namespace orrery::executor
