#pragma once
// Finds a stack's numbers that minimise the loss of `software_fit.hpp` over some of a bench's rows.
// A number that those rows do not determine keeps the profile's own value.

#include <optional>
#include <vector>

#include "scenarios/fitting/software_bench.hpp"

namespace orrery::scenarios {

/// Percentage points by which the typical error must grow when a number alone is moved by 30 %, up
/// or down: below that the rows do not determine the number.
inline constexpr double least_growth = 0.1;

class SoftwareFitter {
 public:
  /// Starts at the numbers of `profile`.
  SoftwareFitter(SoftwareBench& bench, const models::Software& profile);

  const std::vector<double>& start() const { return own_; }

  /// Fits to the rows seen. `complete` becomes false when the bench is asked to stop.
  std::vector<double> fit(const std::vector<bool>& seen, bool& complete);

  /// The smaller growth of the typical error of the rows seen, in percentage points (FittedNumber).
  double growth_of(std::size_t number, const std::vector<double>& numbers,
                   const std::vector<bool>& seen, bool& complete);

 private:
  /// Whether a loss includes the penalty for moving numbers from the start.
  enum class Penalty : std::uint8_t { counts, is_left };

  std::vector<double> minimum(const std::vector<bool>& seen, const std::vector<bool>& held,
                              bool& complete);
  std::optional<double> loss_at(const std::vector<double>& numbers, const std::vector<bool>& seen,
                                Penalty penalty = Penalty::counts);
  double penalty_of(const std::vector<double>& numbers) const;
  std::vector<double> with_kept(std::vector<double> numbers, const std::vector<bool>& seen);
  std::optional<std::size_t> least_determined(const std::vector<double>& numbers,
                                              const std::vector<bool>& seen, bool& complete);
  std::vector<double> at(const std::vector<double>& strides) const;
  std::vector<double> rounded(std::vector<double> numbers) const;

  SoftwareBench& bench_;
  std::vector<double> own_;   // the profile's
  std::vector<double> from_;  // the same, clamped to plausible values: where the search begins
};

}  // namespace orrery::scenarios
