#pragma once
// Grouped GEMMs of experts: how rows are distributed over experts for a measurement, and the
// residuals of the cost model (models/pricing/grouped.hpp) from measured times.

#include <map>
#include <vector>

#include "hardware/gpu/gpu.hpp"
#include "models/program/block.hpp"

namespace orrery::calibrate {

/// Equal rows for all experts; the first ones get one more if the rows do not divide evenly.
std::vector<std::int64_t> even_rows(std::int64_t rows, std::int64_t experts);

/// Skewed routing: expert e gets 1 / e of the first one's rows, rounded to whole rows.
///   rows_e = rows / e / (1 + 1/2 + ... + 1/experts)
/// Source  Zipf 1949; of 8 experts the first has 37 % of the rows, 2.9 times the mean
std::vector<std::int64_t> zipf_rows(std::int64_t rows, std::int64_t experts);

/// One measured grouped_gemm.
struct GroupedPoint {
  models::Operation op;
  Time time{};
};

/// The fit of one number format. `even` and `skewed` are medians of the time over that of one dense
/// GEMM of the same FLOPs and bytes on the same GPU; 0 if none was measured. Skewed: one expert has
/// more than twice the mean rows.
struct GroupedFit {
  std::vector<hardware::ShapeResidual::ResidualSample> residuals;  // measured over the cost model
  double even = 0, skewed = 0;
};

/// gpu  must have the dense GEMM curves measured along with these; a format that it lacks is left
///      out
std::map<models::DType, GroupedFit> fit_grouped(const std::vector<GroupedPoint>& points,
                                                const hardware::Gpu& gpu);

}  // namespace orrery::calibrate
