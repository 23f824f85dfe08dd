#pragma once
// How far off curves are beyond the sizes that they were fitted to: each is fitted to the smaller
// or the larger part of its measured sizes and asked for the rest. The source of
// models/prediction/error/extrapolation.hpp.

#include <string>
#include <vector>

#include "sim/input/csv.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// One row, predicted by a curve whose range ends before it.
struct BeyondPoint {
  std::string kind;   // "gemm", "attention", "collective"
  double factor = 1;  // by which the row's size is beyond the nearest one of the fit
  double error = 0;   // ln(predicted / measured)
};

/// Every row of a table of kernels or collectives that lies beyond a half, quarter, eighth or
/// sixteenth of its curve's sizes, once for each of them.
/// Errors  a table of something else: InputError
std::vector<BeyondPoint> points_beyond_range(const orrery::Table& table);

/// By kind: `{rows, per_factor_e, by_factor{"1 to 2": {rows, median_abs_error_pct,
/// p90_abs_error_pct}}}`
///   per_factor_e = sqrt(pi / 2) sum |e| x / sum x^2,  x = ln(factor)
/// the standard deviation of ln(time / predicted) at factor e: that of a normal error whose mean
/// size grows as x.
Json beyond_range_json(const std::vector<BeyondPoint>& points);
std::string beyond_range_text(const std::vector<BeyondPoint>& points);

}  // namespace orrery::scenarios
