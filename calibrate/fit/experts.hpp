#pragma once
// Grouped GEMMs of experts: how their rows are parted for a measurement, and what measured times
// say of the rule that prices them (models/pricing/grouped.hpp).

#include <map>
#include <vector>

#include "hardware/gpu.hpp"
#include "models/program/block.hpp"

namespace orrery::calibrate {

/// All experts alike, the first ones with a row more where it does not divide.
std::vector<std::int64_t> even_rows(std::int64_t rows, std::int64_t experts);

/// Popular experts and others: expert e has a share of 1 / e of the first one's, to whole rows.
///   rows_e = rows / e / (1 + 1/2 + ... + 1/experts)
/// Source  Zipf 1949; of 8 experts the first has 37 % of the rows, 2.9 times the mean
std::vector<std::int64_t> zipf_rows(std::int64_t rows, std::int64_t experts);

/// One measured grouped_gemm.
struct GroupedPoint {
  models::Operation op;
  Time time{};
};

/// Those of one format. `even` and `skewed` are medians of the time over that of one plain product
/// of as many FLOPs and bytes on the same GPU; 0 where none was measured. Skewed: an expert has
/// more than twice the mean.
struct GroupedFit {
  std::vector<hardware::ShapeResidual::ResidualSample> residuals;  // measured over the rule
  double even = 0, skewed = 0;
};

/// gpu  with the curves of plain products that were measured next to them; a format that it lacks
/// is left
///      out
std::map<models::DType, GroupedFit> fit_grouped(const std::vector<GroupedPoint>& points,
                                                const hardware::Gpu& gpu);

}  // namespace orrery::calibrate
