#pragma once
// Bayesian linear regression: updates numbers that have a prior with a few measured steps.
//   error_i = sum_k J_ik x_k + f_cell(i) + e_i,  x_k ~ N(0, spread_k), f ~ N(0, 0.10),
//   e ~ N(0, 0.06)
// f is an effect of a site or a version of a stack on all its runs that no number expresses. Errors
// of outliers count linearly (Huber's weights).
// Source  the normal equations of Bayesian linear regression (Bishop 2006, section 3.3); Huber 1964
//         for the weights; 0.10 and 0.06: runs of scenarios/validation/runs.csv, between cells of
//         stack, year and site, and inside them

#include <cstddef>
#include <vector>

namespace orrery::scenarios {

/// Rows linearised around the prior.
struct LinearRows {
  std::vector<double> errors;               // ln(measured / predicted)
  std::vector<std::vector<double>> slopes;  // by row and number: change of ln(predicted)
  std::vector<std::size_t> cells;           // by row, from 0
};

struct Posterior {
  std::vector<double> moves;    // by number, from the prior
  std::vector<double> spreads;  // remaining spread of each number
  std::vector<double> factors;  // by cell, logarithms
};

inline constexpr double spread_of_cells = 0.10;
inline constexpr double spread_of_rows = 0.06;

/// Errors  rows that differ in length: ContractError
Posterior posterior_of(const LinearRows& rows, const std::vector<double>& spreads);

/// What a posterior minimises, -ln of its density up to a constant:
///   sum_k (x_k / spread_k)^2 / 2 + sum (f / 0.10)^2 / 2
///     + sum_i huber((error_i - f_cell(i)) / 0.06)
/// `errors` are ln(measured / predicted) with the numbers moved by `at.moves`.
double misfit(const Posterior& at, const std::vector<double>& errors,
              const std::vector<std::size_t>& cells, const std::vector<double>& spreads);

}  // namespace orrery::scenarios
