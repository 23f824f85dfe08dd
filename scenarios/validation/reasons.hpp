#pragma once
// Why runs are not scored, simulated or used: reasons with how many runs they hold for.

#include <map>
#include <string>
#include <vector>

namespace orrery::scenarios {

class Reasons {
 public:
  /// An empty reason is none.
  void add(const std::string& reason, const std::string& run) {
    if (!reason.empty()) runs_[reason].push_back(run);
  }

  const std::map<std::string, std::vector<std::string>>& runs() const { return runs_; }
  /// A line each, the first few runs named: `     2  no step_time_s is stated (a1, a4)`.
  std::string lines() const;

 private:
  std::map<std::string, std::vector<std::string>> runs_;
};

}  // namespace orrery::scenarios
