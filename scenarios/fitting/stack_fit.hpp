#pragma once
// Fits a stack's inherited numbers to few of its steps, starting from a prior.

#include <vector>

#include "scenarios/fitting/inherited_numbers.hpp"
#include "scenarios/fitting/posterior.hpp"
#include "scenarios/fitting/software_bench.hpp"

namespace orrery::scenarios {

/// Numbers as coordinates (inherited_numbers.hpp).
struct FittedStack {
  std::vector<double> prior, coordinates;
  std::vector<double> spreads;  // remaining, of each number; empty if no row was seen
  std::vector<double> factors;  // by cell: ln(measured / predicted) that no number expresses
};

/// Rows of one profile. A row keeps the switches of its own profile and year.
class StackFit {
 public:
  /// cells  by row: the cell whose factor applies (posterior.hpp)
  StackFit(std::vector<BenchRow> rows, std::vector<std::size_t> cells, models::Software profile,
           unsigned threads);

  const models::Software& profile() const { return profile_; }
  const BenchRow& operator[](std::size_t row) const { return rows_[row]; }
  std::size_t size() const { return rows_.size(); }

  /// ln(measured / predicted) of the rows chosen, with these numbers.
  std::vector<double> errors(const std::vector<std::size_t>& rows,
                             const std::vector<double>& coordinates) const;
  /// The most probable numbers given the prior and the rows seen; without rows the prior itself.
  /// Step times are linearised around the best numbers so far, again and again while that helps
  /// (Gauss-Newton); a step that does not is halved.
  FittedStack fit(const std::vector<std::size_t>& seen, const std::vector<double>& prior) const;

  /// Linearises the rows seen around these numbers.
  LinearRows rows_at(const std::vector<std::size_t>& seen, const std::vector<double>& prior) const;

 private:
  struct Lowered {
    std::vector<double> numbers;  // those that the lowering reads; empty: not lowered yet
    models::Program program;
  };

  const models::Program& program(std::size_t row, const models::Software& software) const;
  std::vector<std::size_t> cells_of(const std::vector<std::size_t>& seen) const;
  LinearRows rows_around(const std::vector<std::size_t>& seen, const std::vector<double>& prior,
                         const std::vector<double>& moves) const;

  std::vector<BenchRow> rows_;
  std::vector<std::size_t> cells_;
  models::Software profile_;
  mutable std::vector<Lowered> lowered_;  // by row
  std::vector<double> own_;               // the profile's coordinates
  unsigned threads_;
};

}  // namespace orrery::scenarios
