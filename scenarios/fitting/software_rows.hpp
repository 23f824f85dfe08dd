#pragma once
// Selects the measured runs that a fit of software profiles uses, by the profile that they run,
// with a reason for every other run.

#include <map>
#include <string>
#include <vector>

#include "scenarios/fitting/software_bench.hpp"
#include "scenarios/validation/measured_run.hpp"

namespace orrery::scenarios {

struct UnusedRow {
  std::size_t row = 0;  // in the list of runs
  std::string reason;
};

/// Treatment of runs that are reported separately. left_out: none is used; used: runs of dense
/// models, of ZeRO-2 and ZeRO-3 and runs whose line names its group are used; held: the others are
/// added, marked as held.
enum class Apart : std::uint8_t { left_out, used, held };

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

/// How many runs are used and why the others are not: `6 rows, 5 used; a1: unknown GPU 'H100';
/// known: ...`, grouped by reason if more than a few are not used.
std::string account_of(const std::vector<MeasuredRun>& runs, const std::vector<UnusedRow>& unused);

}  // namespace orrery::scenarios
