#pragma once
// Other simulators' tables of measured steps: their predictions next to ours, each run once as its
// table states it and once with the flags of the scripts that ran it.
//
// Left out: other simulators themselves. Only what they published of their own runs is compared.

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/validation/validation.hpp"

namespace orrery::scenarios {

/// Columns of a table of training runs that says whose it is. Column `simulator` switches them on.
///   simulator              who published the run; empty: nobody's, not compared
///   simulator_step_time_s  what that simulator predicted; empty: not published for each run
///   simulator_mean_pct     the mean absolute error that its authors state of all of its runs
///   flags                  plan fields that the run's scripts state and its table does not:
///                          "zero=1 recompute=none"
///   seen                   in runs.csv: `fit`, `listed` (no fit uses it) or `no`
inline constexpr std::array<std::string_view, 5> simulator_columns{
    "simulator", "simulator_step_time_s", "simulator_mean_pct", "flags", "seen"};

/// Errors over one simulator's runs, in percent.
struct SimulatorScores {
  std::string simulator;
  std::size_t rows = 0, in_fits = 0;              // that count; of them, those that fits may use
  std::size_t inside = 0;                         // of them, with flags: measured within p10 to p90
  std::optional<ErrorSummary> as_typed, flagged;  // ours
  std::optional<ErrorSummary> unseen;             // ours with the flags, of runs not in runs.csv
  std::optional<ErrorSummary> theirs;             // of the runs that it published its own time of
  std::optional<double> stated_mean;              // what its authors state instead
  Json runs = Json::array();
};

/// The runs with their flags; without flags as they are. Empty if the table has no simulators.
/// Errors  `FILE:line 3: column 'flags': expected ..., found "..."`
std::vector<MeasuredRun> flagged_runs(const orrery::Table& table,
                                      const std::vector<MeasuredRun>& runs);

/// One entry for each simulator, in the order of the table. A run counts if it is simulated both
/// ways, has a step time and is not set aside.
/// Errors  a cell of these columns that is none of what it may be
std::vector<SimulatorScores> scores_by_simulator(const orrery::Table& table,
                                                 const std::vector<MeasuredRun>& runs,
                                                 const std::vector<RunResult>& as_typed,
                                                 const std::vector<RunResult>& flagged);

/// `{NAME: {rows, in_fits, as_typed, with_flags, unseen_with_flags, inside_with_flags, their_own,
/// their_own_stated_mean_pct, runs}}`
Json to_json(const std::vector<SimulatorScores>& scores);
/// A table for people; empty without simulators.
std::string table_of(const std::vector<SimulatorScores>& scores);

}  // namespace orrery::scenarios
