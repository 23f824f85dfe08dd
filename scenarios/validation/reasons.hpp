#pragma once
// Collects reasons why runs are not scored, simulated or used, with the runs that each holds for.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/validation/validation.hpp"

namespace orrery::scenarios {

class Reasons {
 public:
  /// Adds a run to a reason; an empty reason is ignored.
  void add(const std::string& reason, const std::string& run) {
    if (!reason.empty()) runs_[reason].push_back(run);
  }

  const std::map<std::string, std::vector<std::string>>& runs() const { return runs_; }
  /// One line per reason with its first runs: `     2  no step_time_s is stated (a1, a4)`.
  std::string lines() const;

 private:
  std::map<std::string, std::vector<std::string>> runs_;
};

/// Why runs are not scored: those that were simulated, and those that were not.
std::pair<Reasons, Reasons> left_out_of(const std::vector<MeasuredRun>& runs,
                                        const std::vector<RunResult>& results);

}  // namespace orrery::scenarios
