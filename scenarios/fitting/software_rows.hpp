#pragma once
// Which measured runs a fit of software profiles uses, by the profile that they run; and of every
// other run, why it does not.

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

/// What becomes of runs that are reported apart: `used` are those of dense models, of ZeRO-2 and
/// ZeRO-3 and those that a line names itself; `held`: the others are there too, marked as held.
enum class Apart : std::uint8_t { left_out, used, held };

struct SoftwareRows {
  /// A stack without a profile has its own here, that starts as `generic`.
  std::map<std::string, std::vector<BenchRow>> by_profile;
  std::vector<UnusedRow> unused;  // in the order of the file
};

/// Left out: runs set aside, reported apart where `apart` says so, or without a time, those that
/// cannot be simulated,
/// those of no stack of `stacks` (stacks or profiles; empty: all), and times ten times off the
/// prediction.
SoftwareRows software_rows(const std::vector<MeasuredRun>& runs,
                           const std::vector<std::string>& stacks,
                           const std::vector<models::Software>& profiles,
                           Apart apart = Apart::left_out);

/// Every run accounted for: `6 rows, 5 used; a1: unknown GPU 'H100'; known: ...`, by reason where
/// more than a few are not used.
std::string account_of(const std::vector<MeasuredRun>& runs, const std::vector<UnusedRow>& unused);

}  // namespace orrery::scenarios
