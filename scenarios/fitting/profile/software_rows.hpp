#pragma once
// Selects the measured runs that a fit of software profiles uses, by the profile that they run,
// with a reason for every other run.

#include <map>
#include <string>
#include <vector>

#include "models/prediction/prediction.hpp"
#include "scenarios/validation/runs/measured_run.hpp"

namespace orrery::scenarios {

/// A run that a fit can use, as a question and its measured step.
struct BenchRow {
  std::size_t row = 0;  // in the list of runs
  models::Question question;
  double measured = 0;    // step, seconds
  bool held = false;      // of a strategy that is reported separately
  std::size_t cell = 0;   // number of its stack, year and site
  std::size_t sweep = 0;  // number of its sweep (`sweep_of`), whose rows count once together
};

struct UnusedRow {
  std::size_t row = 0;  // in the list of runs
  std::string reason;
};

/// Treatment of runs that are reported separately. left_out: none is used; used: runs of dense
/// models, of ZeRO-2 and ZeRO-3 and runs whose line names its group are used; held: the others are
/// added, marked as held; all: none is treated differently.
enum class Apart : std::uint8_t { left_out, used, held, all };

struct SoftwareRows {
  /// Rows by profile. A stack without a profile gets one of its own that starts as `generic`.
  std::map<std::string, std::vector<BenchRow>> by_profile;
  std::vector<UnusedRow> unused;  // in the order of the file
};

/// Not used: runs that are set aside, that are reported separately (depending on `apart`), that
/// state no time or cannot be simulated, those of no stack in `stacks` (stacks or profiles; empty:
/// all), and those whose time is off the prediction by a factor of ten.
SoftwareRows software_rows(const std::vector<MeasuredRun>& runs,
                           const std::vector<std::string>& stacks,
                           const std::vector<models::Software>& profiles,
                           Apart apart = Apart::left_out);

/// A run's stack, year and site, or if no site is stated, its source.
std::string cell_of(const MeasuredRun& run);

/// What all runs of a sweep have in common. Runs of one source that differ in layers or global
/// batch alone repeat the same kernels, and so do those on one node that divide it differently
/// between pipeline stages and replicas. A run without a source has a sweep of its own.
/// Source  the one-node runs of vTrain in scenarios/validation/runs.csv are exactly linear in
/// layers
///         and in micro-batches: 32 cells of tensor x hidden x micro-batch in 284 rows
MeasuredRun sweep_of(const MeasuredRun& run, std::int64_t nodes);

/// How many runs are used and why the others are not: `6 rows, 5 used; a1: unknown GPU 'H100';
/// known: ...`, grouped by reason if more than a few are not used.
std::string account_of(const std::vector<MeasuredRun>& runs, const std::vector<UnusedRow>& unused);

}  // namespace orrery::scenarios
