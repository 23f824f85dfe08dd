#pragma once
// What a few measured steps say of numbers that were not unknown before: a linear fit with spreads.
//   error_i = sum_k J_ik x_k + f_cell(i) + e_i,  x_k ~ N(0, spread_k), f ~ N(0, 0.10),
//   e ~ N(0, 0.06)
// f is what a site or a snapshot of a stack does to all of its runs and no number expresses. Rows
// far off count by their distance (Huber's weights).
// Source  the normal equations of Bayesian linear regression (Bishop 2006, section 3.3); Huber 1964
//         for the weights; 0.10 and 0.06: runs of scenarios/validation/runs.csv, between cells of
//         stack, year and site, and inside them

#include <cstddef>
#include <vector>

namespace orrery::scenarios {

/// Rows as they are predicted at the prior.
struct LinearRows {
  std::vector<double> errors;               // ln(measured / predicted)
  std::vector<std::vector<double>> slopes;  // by row and number: change of ln(predicted)
  std::vector<std::size_t> cells;           // by row, from 0
};

struct Posterior {
  std::vector<double> moves;    // by number, from the prior
  std::vector<double> spreads;  // what is left of each number's spread
  std::vector<double> factors;  // by cell, logarithms
};

inline constexpr double spread_of_cells = 0.10;
inline constexpr double spread_of_rows = 0.06;

/// Errors  rows that differ in length: ContractError
Posterior posterior_of(const LinearRows& rows, const std::vector<double>& spreads);

}  // namespace orrery::scenarios
