#pragma once
// How much wider a step's interval is because shares of peak behind it were not measured on its
// GPU: they follow from its power or were published without a curve. Leaves out communication.

#include "models/prediction/prediction.hpp"
#include "models/program/counts.hpp"

namespace orrery::models {

/// Standard deviation of ln(step) that such shares add:
///   s = sum over kernels of the slowest rank of s_curve t / step
/// s_curve  CurveOrigin::spread;  t  a kernel's time. All kernels err together: the clock that a
/// power limit leaves is that of all.
double spread_of_fallbacks(const Question& question, const Prediction& prediction);
/// counts  of the slowest rank
double spread_of_fallbacks(const Question& question, const Prediction& prediction,
                           const TargetCounts& counts);

}  // namespace orrery::models
