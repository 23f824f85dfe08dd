#pragma once
// The lowest point of a smooth function of a few variables, without derivatives.

#include <functional>
#include <vector>

namespace orrery::calibrate {

/// Nelder and Mead's simplex, from `start` with an edge of `step` in every direction.
/// Deterministic. Source  Nelder & Mead 1965, "A simplex method for function minimization"
std::vector<double> minimise(const std::function<double(const std::vector<double>&)>& cost,
                             std::vector<double> start, double step);

/// Huber's loss of a log residual: square near zero, straight beyond 10 %.
double robust(double log_residual);

/// Median of bare numbers. Errors  none: ContractError
double median_of(std::vector<double> values);

}  // namespace orrery::calibrate
