#pragma once
// Minimises a function of a few bounded variables, and does robust least squares on top of it. Uses
// NLopt's derivative-free minimisers; deterministic: the same bytes on every run.

#include <functional>
#include <vector>

namespace orrery::hardware {

/// A parameter to find. A result at a bound is valid; equal bounds fix the parameter.
struct Unknown {
  double start = 0, low = 0, high = 0;
};

/// How precise and how expensive a search may be.
struct SearchLimits {
  double precision = 1e-10;  // of the cost, relative
  int calls = 4000;          // of the cost, in each of two searches
};

/// The function to minimise. An exception that it throws ends the search and is rethrown.
using Cost = std::function<double(const std::vector<double>&)>;

/// The lowest point inside the bounds, found by a search with a quadratic model (BOBYQA) and a
/// simplex search (Sbplx) after it.
/// Source  Powell 2009, "The BOBYQA algorithm for bound constrained optimization without
///         derivatives"; Rowan 1990, "Functional stability analysis of numerical algorithms"
///         (Sbplx)
/// Errors  no unknown, a start outside its bounds: ContractError; what the cost throws
std::vector<double> minimise(const std::vector<Unknown>& unknowns, const Cost& cost,
                             const SearchLimits& limits = {});

/// Residuals for a set of unknowns: the same number on every call.
using Residuals = std::function<std::vector<double>(const std::vector<double>&)>;

/// Minimises the sum of `soft_l1` of the residuals: robust against a few outliers.
/// Errors  as above; a residual that is not finite: ContractError
std::vector<double> least_squares(const std::vector<Unknown>& unknowns, const Residuals& residuals,
                                  double scale);

/// 2 s^2 (sqrt(1 + (r / s)^2) - 1): a square up to the scale s, then an absolute value.
/// Source  Charbonnier et al. 1994
double soft_l1(double residual, double scale);

}  // namespace orrery::hardware
