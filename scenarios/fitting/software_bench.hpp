#pragma once
// Measured runs of one software profile, laid out so that many versions of the profile can be tried
// on them: lowered once, priced and evaluated for each.

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "models/prediction/prediction.hpp"
#include "scenarios/fitting/software_numbers.hpp"

namespace orrery::scenarios {

/// How trials are made. `keep_going` is asked after each; false stops the fit.
struct Trials {
  unsigned threads = 0;  // 0: as many as the machine has
  std::function<bool()> keep_going;
};

/// A run that a fit can use.
struct BenchRow {
  std::size_t row = 0;  // in the list of runs
  models::Question question;
  double measured = 0;  // step, seconds
  bool held = false;    // predicted, and not fitted to
};

/// Rows that all run the same profile. Numbers are seconds or factors, as software_numbers().
class SoftwareBench {
 public:
  /// Errors  a row whose plan cannot be lowered: InputError
  SoftwareBench(std::vector<BenchRow> rows, Trials trials);

  std::size_t size() const { return rows_.size(); }
  const BenchRow& operator[](std::size_t index) const { return rows_[index]; }
  const models::Software& start() const { return rows_.front().question.software; }
  /// Borrowed curves that a row's prediction rests on.
  int borrowed(std::size_t index) const { return borrowed_[index]; }

  /// ln(predicted / measured) of every row with these numbers; remembered. Nothing once
  /// stopped.
  std::optional<std::vector<double>> errors(const std::vector<double>& numbers);
  models::Software with(const std::vector<double>& numbers) const;

 private:
  std::vector<BenchRow> rows_;
  std::vector<models::Program> programs_;
  std::vector<int> borrowed_;
  Trials trials_;
  std::map<std::vector<double>, std::vector<double>> known_;
};

}  // namespace orrery::scenarios
