#pragma once
// Validates measured collectives: each row is predicted by constants and residuals fitted without
// its curve.

#include <vector>

#include "scenarios/fitting/collectives/measured_collective.hpp"
#include "scenarios/fitting/kernels/curve_report.hpp"
#include "scenarios/fitting/kernels/kernel_validation.hpp"

namespace orrery::scenarios {

using CollectiveQuestion = CurveQuestion<MeasuredCollective>;

/// One result per row, in order. Score classes: inside a domain, by NVLink or PCIe; across nodes,
/// on a network whose other runs were fitted; across nodes, on a network known only from others,
/// where small sizes are scored separately: their spread is the uncertainty of a latency that was
/// not measured.
CurveReport validate_collectives(const std::vector<MeasuredCollective>& rows,
                                 const CollectiveQuestion& question);

}  // namespace orrery::scenarios
