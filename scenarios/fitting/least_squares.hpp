#pragma once
// Nonlinear least squares that a few wild samples do not move: Levenberg-Marquardt with a
// numerical Jacobian, each parameter inside its bounds. Deterministic.

#include <functional>
#include <vector>

namespace orrery::scenarios {

/// A number to find. Bounds are kept by clamping; a bound reached is an answer.
struct Parameter {
  double start = 0, low = 0, high = 0;
};

/// Residuals for a set of parameters: as many on every call.
using Residuals = std::function<std::vector<double>(const std::vector<double>&)>;

/// Minimises the sum of 2 s^2 (sqrt(1 + (r / s)^2) - 1): squares up to the scale s, then absolute
/// values (soft-L1).
/// Source  Levenberg 1944, Marquardt 1963; the loss: Charbonnier et al. 1994
/// Errors  no parameter, a start outside its bounds, a residual that is not finite: ContractError
std::vector<double> least_squares(const std::vector<Parameter>& parameters,
                                  const Residuals& residuals, double scale);

}  // namespace orrery::scenarios
