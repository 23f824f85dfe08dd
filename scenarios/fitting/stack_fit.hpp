#pragma once
// A stack's inherited numbers from few of its steps: a prior, the steps seen, and what they move.

#include <vector>

#include "scenarios/fitting/inherited_numbers.hpp"
#include "scenarios/fitting/posterior.hpp"
#include "scenarios/fitting/software_bench.hpp"

namespace orrery::scenarios {

/// Numbers as coordinates (inherited_numbers.hpp).
struct FittedStack {
  std::vector<double> prior, coordinates;
  std::vector<double> spreads;  // left of each number's; empty where no row was seen
  std::vector<double> factors;  // by cell: ln(measured / predicted) that no number expresses
};

/// Rows of one profile. A row's own switches and those of its year stay.
class StackFit {
 public:
  /// cells  by row: what a factor belongs to (posterior.hpp)
  StackFit(std::vector<BenchRow> rows, std::vector<std::size_t> cells, models::Software profile,
           unsigned threads);

  const models::Software& profile() const { return profile_; }
  const BenchRow& operator[](std::size_t row) const { return rows_[row]; }
  std::size_t size() const { return rows_.size(); }

  /// ln(measured / predicted) of the rows chosen, with these numbers.
  std::vector<double> errors(const std::vector<std::size_t>& rows,
                             const std::vector<double>& coordinates) const;
  /// From the prior and the rows seen; the prior itself without any. A step that makes the rows
  /// seen worse is halved: the fit is linear and the steps are not.
  FittedStack fit(const std::vector<std::size_t>& seen, const std::vector<double>& prior) const;

  /// Errors and slopes of the rows seen around these numbers.
  LinearRows rows_at(const std::vector<std::size_t>& seen, const std::vector<double>& prior) const;

 private:
  struct Lowered {
    std::vector<double> numbers;  // those that the lowering reads; none yet: no Program
    models::Program program;
  };

  const models::Program& program(std::size_t row, const models::Software& software) const;
  double loss(const std::vector<std::size_t>& seen, const std::vector<double>& coordinates) const;

  std::vector<BenchRow> rows_;
  std::vector<std::size_t> cells_;
  models::Software profile_;
  mutable std::vector<Lowered> lowered_;  // by row
  std::vector<double> own_;               // the profile's coordinates
  unsigned threads_;
};

}  // namespace orrery::scenarios
