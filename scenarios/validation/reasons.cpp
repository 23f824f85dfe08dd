#include "scenarios/validation/reasons.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace orrery::scenarios {

namespace {

std::string first_few(const std::vector<std::string>& runs) {
  constexpr std::size_t most = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(runs.size(), most); ++i) text += ", " + runs[i];
  if (runs.size() > most) text += ", ...";
  return text.substr(2);
}

}  // namespace

std::pair<Reasons, Reasons> left_out_of(const std::vector<MeasuredRun>& runs,
                                        const std::vector<RunResult>& results) {
  std::pair<Reasons, Reasons> both;
  for (const RunResult& each : results) {
    Reasons& reasons = each.simulated() ? both.first : both.second;
    reasons.add(each.left_out_because(), runs[each.row].run);
  }
  return both;
}

std::string Reasons::lines() const {
  std::string text;
  for (const auto& [reason, runs] : runs_) {
    text += fmt::format("{:>6}  {} ({})\n", runs.size(), reason, first_few(runs));
  }
  return text;
}

}  // namespace orrery::scenarios
