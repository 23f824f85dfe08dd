#pragma once
// Measured times of one operation as a latency and a rate.

#include <optional>
#include <vector>

#include "hardware/curves/size_table.hpp"

namespace orrery::models {

/// t = latency + per_byte * size, in seconds.
struct FittedLine {
  double latency = 0, per_byte = 0;
};

/// Least squares of t / measured - 1; both at least 0, since small sizes alone show no rate and
/// large ones no latency.
/// Errors  no point: ContractError
FittedLine fitted_line(const std::vector<hardware::SizeTable::Point>& points);

}  // namespace orrery::models
