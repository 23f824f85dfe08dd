#pragma once
// Bayesian linear regression: updates numbers that have a prior with measured steps.
//   error_i = sum_k J_ik x_k + sum_c C_ic f_c + e_i,  x_k ~ N(0, spread_k), f ~ N(0, 0.10),
//   e ~ N(0, 0.06), the row counting w_i times
// f_c is an effect of a site or a version of a stack on all its runs that no number expresses; C_ic
// is 1 for the row's own cell and 0 for others, less their mean where numbers take the level of all
// rows. Errors of outliers count linearly (Huber's weights), and beyond 30 % by their logarithm
// (Cauchy's): those of jobs that were slow for a reason that no input tells.
// Source  the normal equations of Bayesian linear regression (Bishop 2006, section 3.3); Huber 1964
//         and Holland & Welsch 1977 for the weights; 0.10 and 0.06: runs of
//         scenarios/validation/runs.csv, between cells of stack, year and site, and inside them

#include <Eigen/Core>
#include <cstddef>

namespace orrery::scenarios {

/// Rows linearised around the prior.
struct LinearRows {
  Eigen::VectorXd errors;   // ln(measured / predicted)
  Eigen::MatrixXd slopes;   // by row and number: change of ln(predicted)
  Eigen::MatrixXd cells;    // by row and cell: change of ln(predicted) by the cell's factor
  Eigen::VectorXd weights;  // by row: 1 for an independent one
};

struct Posterior {
  Eigen::VectorXd moves;       // by number, from the prior
  Eigen::MatrixXd covariance;  // remaining, of the numbers
  Eigen::VectorXd factors;     // by cell, logarithms

  double spread(std::size_t number) const;  // standard deviation that remains
};

inline constexpr double spread_of_cells = 0.10;
inline constexpr double spread_of_rows = 0.06;

/// Errors  rows that differ in length: ContractError
Posterior posterior_of(const LinearRows& rows, const Eigen::VectorXd& spreads);

/// What a posterior minimises, -ln of its density up to a constant:
///   sum_k (x_k / spread_k)^2 / 2 + sum (f / 0.10)^2 / 2
///     + sum_i w_i cost((error_i - sum_c C_ic f_c) / 0.06)
/// `rows.errors` are those that are left with the numbers moved by `at.moves`; slopes are not read.
double misfit(const Posterior& at, const LinearRows& rows, const Eigen::VectorXd& spreads);

}  // namespace orrery::scenarios
