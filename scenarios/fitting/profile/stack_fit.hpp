#pragma once
// The estimator of a software profile's numbers: the most probable ones given a prior and measured
// steps, for twenty steps as for nine hundred.

#include <functional>
#include <vector>

#include "scenarios/fitting/profile/posterior.hpp"
#include "scenarios/fitting/profile/profile_numbers.hpp"
#include "scenarios/fitting/profile/software_rows.hpp"

namespace orrery::scenarios {

/// With at most this many rows, a factor common to all of them is estimated next to the numbers;
/// with more, the numbers take it, and only differences between cells are factors.
inline constexpr std::size_t few_runs = 20;

/// Options of trials. `keep_going` is called after each; false stops the fit.
struct Trials {
  unsigned threads = 0;  // 0: as many as the machine has
  std::function<bool()> keep_going;
};

/// Thrown by a fit that `keep_going` stops.
struct FitStopped {};

/// Numbers as coordinates (profile_numbers.hpp).
struct FittedStack {
  Eigen::VectorXd prior, coordinates;
  Eigen::MatrixXd covariance;  // remaining
  Eigen::VectorXd factors;     // by cell: ln(measured / predicted) that no number expresses

  /// Remaining standard deviation of the number as it is written: that of one generation's GEMMs
  /// includes that of all.
  double spread(std::size_t number) const;
};

/// Rows of one profile. A row keeps the switches of its own profile and year.
class StackFit {
 public:
  StackFit(std::vector<BenchRow> rows, models::Software profile, Trials trials);

  const models::Software& profile() const { return profile_; }
  const BenchRow& operator[](std::size_t row) const { return rows_[row]; }
  std::size_t size() const { return rows_.size(); }

  /// ln(measured / predicted) of the rows chosen, with these numbers.
  Eigen::VectorXd errors(const std::vector<std::size_t>& rows,
                         const Eigen::VectorXd& coordinates) const;
  /// The most probable numbers given the prior and the rows seen; without rows the prior itself.
  /// Step times are linearised around the best numbers so far, again and again while that helps
  /// (Gauss-Newton); a step that does not is halved. Rows of one sweep share the weight of one.
  /// Errors  FitStopped
  FittedStack fit(const std::vector<std::size_t>& seen, const Eigen::VectorXd& prior) const;

  /// ln(measured / predicted) that these numbers leave to the stack as a whole (`left_to_stack`),
  /// of at most `few_runs` rows; 0 of none, or of more, whose level the numbers take.
  double left_to_stack(const std::vector<std::size_t>& seen,
                       const Eigen::VectorXd& coordinates) const;

  /// Linearises the rows seen around these numbers.
  LinearRows rows_at(const std::vector<std::size_t>& seen, const Eigen::VectorXd& there) const;
  /// The same, of all rows and kept: fits with each group of rows left out begin at one prior.
  LinearRows rows_at_prior(const std::vector<std::size_t>& seen,
                           const Eigen::VectorXd& prior) const;

  /// Can the rows seen determine the number? That of a GPU generation needs rows of large models on
  /// it, whose steps are GEMMs, and rows of another generation.
  bool determines(const std::vector<std::size_t>& seen, const ProfileNumber& number) const;

 private:
  struct Lowered {
    std::vector<double> numbers;  // those that the lowering reads; empty: not lowered yet
    models::Program program;
  };

  const models::Program& program(std::size_t row, const models::Software& software) const;
  struct Lines {  // of all rows
    Eigen::VectorXd prior, errors;
    Eigen::MatrixXd slopes;
  };

  Eigen::VectorXd slopes_of(const std::vector<std::size_t>& seen, const Eigen::VectorXd& errors,
                            const Eigen::VectorXd& there, Eigen::Index number) const;
  LinearRows unlinearised(const std::vector<std::size_t>& seen, Eigen::VectorXd errors) const;

  std::vector<BenchRow> rows_;
  models::Software profile_;
  Trials trials_;
  mutable std::vector<Lowered> lowered_;  // by row
  mutable Lines lines_;                   // at the last prior
  Eigen::VectorXd own_;                   // the profile's coordinates
};

/// Every row of a fit.
std::vector<std::size_t> all_rows(const StackFit& fit);

/// The part of ln(measured / predicted) that holds for the stack at any site, of C cells' errors:
///   the mean of the cells' medians, times C / (C + 1)
/// A stack and a cell of it are off by as much (half of the variance of `spread_of_cells` each), so
/// that of one cell half is the stack's.
/// Source  the mean of a random-effects model, shrunk (Gelman et al. 2013, Bayesian Data Analysis,
///         section 5.4)
double left_to_stack(const std::vector<double>& errors, const std::vector<std::size_t>& cells);

/// What a profile states as `unexplained` for rows with these ln(measured / predicted): their
/// median, shrunk towards 1 the fewer rows there are; to three digits. With many rows, 1 unless
/// nine in ten are off in one direction: no number of the profile explains that.
double unexplained_by(const std::vector<double>& errors);

}  // namespace orrery::scenarios
