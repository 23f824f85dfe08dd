#pragma once
// Operands of a GEMM in fp8, mxfp8 or nvfp4: two matrices, the scales of those that are stored in
// blocks, and an optional bias.

#include <array>
#include <cstddef>
#include <span>

#include "executor/device/block_scales.hpp"
#include "executor/device/device.hpp"

namespace orrery::executor {

inline bool is_low_precision(const View& view) {
  return view.dtype == models::DType::fp8 || view.dtype == models::DType::fp4;
}

/// Whether the dimension that a GEMM sums over (k) runs within the rows or down the columns of its
/// first operand (0) or second (1).
inline BlocksAlong summed_along(const models::GemmShape& gemm, std::size_t operand) {
  const bool down_columns = operand == 0 ? gemm.transpose_a : !gemm.transpose_b;
  return down_columns ? BlocksAlong::columns : BlocksAlong::rows;
}

struct LowPrecisionOperands {
  std::array<const View*, 2> matrices{}, scales{};  // scales: null where there are none
  const View* bias = nullptr;
  models::DType stored = models::DType::fp8;

  explicit LowPrecisionOperands(std::span<const View> reads) : matrices{&reads[0], &reads[1]} {
    for (const View* each : matrices) {
      if (is_low_precision(*each)) stored = each->dtype;
    }
    std::size_t matrix = 0;
    for (const View& each : reads.subspan(2)) {
      if (each.dtype != models::DType::uint8) {
        bias = &each;
        continue;
      }
      while (!is_low_precision(*matrices[matrix])) ++matrix;
      scales[matrix++] = &each;
    }
  }
  /// True if an operand has block scales, instead of one scale for the tensor.
  bool in_blocks() const { return scales[0] != nullptr || scales[1] != nullptr; }
};

}  // namespace orrery::executor
