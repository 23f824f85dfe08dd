#pragma once
// How far a size lies outside the range that a curve was measured on. Its formula, or the slope of
// its table, answers there all the same.

#include "hardware/curves/curve.hpp"
#include "hardware/curves/size_table.hpp"

namespace orrery::models {

/// The ratio of a size to the nearest measured one; 1 inside the range. Of a GEMM the largest over
/// its three sides.
double beyond(const hardware::GemmRange& range, const hardware::GemmSize& shape);
double beyond(const hardware::SequenceRange& range, std::int64_t tokens);
/// Errors  an empty table: ContractError
double beyond(const hardware::SizeTable& table, Bytes size);

}  // namespace orrery::models
