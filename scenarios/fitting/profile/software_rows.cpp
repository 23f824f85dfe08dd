#include "scenarios/fitting/profile/software_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "scenarios/fitting/profile/step_alone.hpp"
#include "scenarios/validation/reasons.hpp"
#include "scenarios/validation/runs/run_experts.hpp"
#include "scenarios/validation/runs/run_question.hpp"
#include "scenarios/validation/validation.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

bool is_asked(const std::vector<std::string>& asked, const std::string& stack,
              const std::string& profile) {
  return asked.empty() || std::ranges::find(asked, stack) != asked.end() ||
         std::ranges::find(asked, profile) != asked.end();
}

/// Whether a run is in a group that `Apart::used` leaves out.
bool is_held(const MeasuredRun& run) {
  const std::string group = group_apart(run);
  const bool of_strategy = group != run.reported_apart || has_experts(run);
  return !group.empty() && group != sharded_runs && of_strategy;
}

/// Why the line itself rules out its use; empty if it does not.
std::string stated_against(const MeasuredRun& run, Apart apart) {
  if (!run.set_aside.empty()) return "set aside: " + run.set_aside;
  const bool never_fitted =
      run.reported_apart == new_source_runs || run.reported_apart == recurrent_runs;
  if (never_fitted && apart != Apart::all) {
    return "reported separately: " + run.reported_apart;
  }
  if (apart != Apart::left_out) {
    if (apart == Apart::used && is_held(run)) return "reported separately: " + group_apart(run);
    return run.step_time ? "" : "no step_time_s is stated";
  }
  if (!run.reported_apart.empty()) return "reported separately: " + run.reported_apart;
  if (run.count("context").value_or(1) > 1)
    return std::string{"reported separately: "} + context_runs;
  return run.step_time ? "" : "no step_time_s is stated";
}

std::string doubt_about(const MeasuredRun& run, const models::Question& question) {
  try {
    return doubt_of(run, step_of(question).seconds);
  } catch (const InputError& error) {
    return error.what();
  }
}

/// Separates the runs that are used from those that are not.
class Sorting {
 public:
  Sorting(const std::vector<std::string>& stacks, const std::vector<models::Software>& profiles,
          Apart apart)
      : stacks_{stacks}, questions_{profiles}, apart_{apart} {}

  /// Adds a run; returns why it is not used, empty if it is.
  std::string add(std::size_t row, const MeasuredRun& run) {
    std::string reason = stated_against(run, apart_);
    if (!reason.empty()) return reason;
    auto asked = questions_.of(run);
    if (const Skip* skip = std::get_if<Skip>(&asked)) return skip->reason;
    auto& question = std::get<models::Question>(asked);
    const std::string& own = question.software.name;
    const std::string name = own == "generic" && !run.software.empty() ? run.software : own;
    if (!is_asked(stacks_, run.software, name)) return "of a stack that --stack does not name";
    reason = doubt_about(run, question);
    if (!reason.empty()) return reason;
    const std::size_t cell = cells_.emplace(cell_of(run), cells_.size()).first->second;
    const std::size_t sweep =
        sweeps_.emplace(sweep_of(run, question.cluster.nodes), sweeps_.size()).first->second;
    rows_[name].push_back({.row = row,
                           .question = std::move(question),
                           .measured = *run.step_time,
                           .held = apart_ != Apart::all && is_held(run),
                           .cell = cell,
                           .sweep = sweep});
    return {};
  }

  std::map<std::string, std::vector<BenchRow>> take() { return std::move(rows_); }

 private:
  const std::vector<std::string>& stacks_;
  Questions questions_;
  Apart apart_;
  std::map<std::string, std::vector<BenchRow>> rows_;
  std::map<std::string, std::size_t> cells_;
  std::map<MeasuredRun, std::size_t> sweeps_;
};

}  // namespace

std::string cell_of(const MeasuredRun& run) {
  return fmt::format("{}, {}, {}", run.software, run.year.value_or(0),
                     run.site.empty() ? run.source : run.site);
}

MeasuredRun sweep_of(const MeasuredRun& run, std::int64_t nodes) {
  if (run.source.empty()) return run;
  MeasuredRun common = run.question();
  common.model.clear();
  common.layers.reset();
  common.plan.erase("global_batch");
  if (nodes > 1) return common;
  common.gpus.reset();
  common.gpus_per_node.reset();
  for (const char* each : {"pipeline", "schedule", "data"}) common.plan.erase(each);
  return common;
}

SoftwareRows software_rows(const std::vector<MeasuredRun>& runs,
                           const std::vector<std::string>& stacks,
                           const std::vector<models::Software>& profiles, Apart apart) {
  SoftwareRows rows;
  Sorting sorting{stacks, profiles, apart};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string reason = sorting.add(i, runs[i]);
    if (!reason.empty()) rows.unused.push_back({i, reason});
  }
  rows.by_profile = sorting.take();
  return rows;
}

std::string account_of(const std::vector<MeasuredRun>& runs, const std::vector<UnusedRow>& unused) {
  constexpr std::size_t few = 3;
  std::string text = fmt::format("{} rows, {} used", runs.size(), runs.size() - unused.size());
  if (unused.size() <= few) {
    for (const UnusedRow& each : unused) {
      text += fmt::format("; {}: {}", runs[each.row].run, each.reason);
    }
    return text;
  }
  Reasons reasons;
  for (const UnusedRow& each : unused) reasons.add(each.reason, runs[each.row].run);
  return text + "; not used:\n" + reasons.lines();
}

}  // namespace orrery::scenarios
