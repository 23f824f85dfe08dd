#pragma once
// Measured runs of one software profile, prepared for trying many versions of the profile on them:
// lowered once, priced and evaluated for each version.

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "models/prediction/prediction.hpp"
#include "scenarios/fitting/software_numbers.hpp"

namespace orrery::scenarios {

/// Options of trials. `keep_going` is called after each; false stops the fit.
struct Trials {
  unsigned threads = 0;  // 0: as many as the machine has
  std::function<bool()> keep_going;
};

/// A run that a fit can use, as a question and its measured step.
struct BenchRow {
  std::size_t row = 0;  // in the list of runs
  models::Question question;
  double measured = 0;  // step, seconds
  bool held = false;    // of a strategy that is reported separately
};

/// Rows of one profile. Numbers are seconds or factors, as in software_numbers().
class SoftwareBench {
 public:
  /// Errors  a row whose plan cannot be lowered: InputError
  SoftwareBench(std::vector<BenchRow> rows, Trials trials);

  std::size_t size() const { return rows_.size(); }
  const BenchRow& operator[](std::size_t index) const { return rows_[index]; }
  const models::Software& start() const { return rows_.front().question.software; }
  /// The number of fallback curves in a row's prediction.
  int fallback_curves(std::size_t index) const { return fallback_curves_[index]; }

  /// ln(predicted / measured) of every row with these numbers; cached. Nothing once stopped.
  std::optional<std::vector<double>> errors(const std::vector<double>& numbers);
  models::Software with(const std::vector<double>& numbers) const;

 private:
  std::vector<BenchRow> rows_;
  std::vector<models::Program> programs_;
  std::vector<int> fallback_curves_;
  Trials trials_;
  std::map<std::vector<double>, std::vector<double>> known_;
};

}  // namespace orrery::scenarios
