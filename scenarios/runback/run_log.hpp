#pragma once
// Step times from logs that know no more: iteration lines of Megatron-LM, torchtitan's lines,
// MLPerf's :::MLLOG, a metric of MLflow's file store, or a CSV file with a row for each step (and
// rank). Left out: losses, and whatever else they print.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/prediction/prediction.hpp"
#include "sim/quantity.hpp"

namespace orrery::scenarios {

/// One line's step. Of a log that states a rate only, `rate` is set: see RunLog::time_of.
struct LoggedStep {
  std::int64_t step = 0;
  double seconds = 0;                    // 0: the line states a rate
  double tokens_per_second_per_gpu = 0;  // 0: not stated
  double samples_per_second = 0;         // of the whole job; 0: not stated
  std::optional<std::int64_t> rank{};    // of CSV rows
  std::string node{};                    // of CSV rows
};

struct RunLog {
  std::string file;
  std::string_view format;  // "Megatron-LM", "torchtitan", "MLLOG", "MLflow", "CSV"
  std::vector<LoggedStep> steps;
  std::optional<std::int64_t> rank;  // by the file's name
  std::string quantity = "step";     // of CSV: the column's name, "compute_ms"
  bool own_time = false;             // a column of time that waits for no other rank
  /// What the log itself says of a step; empty: nothing.
  std::optional<std::int64_t> global_batch{}, seq_len{};
  std::vector<std::string> notes;
  /// Lines of a step whose time is none: not a number, not above 0, or damaged; where the first is.
  std::size_t unusable = 0;
  std::optional<std::size_t> first_unusable{};

  /// Seconds of every step. Rates become times with the question's tokens and GPUs; without a
  /// question they become those of one sample, or of one token on one GPU.
  std::vector<double> step_seconds(const models::Question* question) const;
};

/// Leading steps that are a warm-up: as long as they take over 1.1 times the median of the second
/// half, at most a third of all; with five or more steps at least the first. Of two to four it is
/// the first, if it takes over 1.1 times the median of the others.
std::size_t warm_up_of(const std::vector<double>& seconds);

/// Median, spread and trend of step times without the warm-up.
struct StepStatistics {
  std::size_t steps = 0, left_out = 0;
  double median = 0, p10 = 0, p90 = 0;
  /// Of the robust line through the steps (Theil and Sen): its change over the log, of the median.
  double trend = 0;
  std::size_t slow = 0;  // steps over 1.5 times the median
};
StepStatistics statistics_of(const std::vector<double>& seconds,
                             std::optional<std::size_t> skip = std::nullopt);

/// Whether a file's beginning is of such a log, or a path a run of MLflow's store.
bool is_run_log(const std::string& path, std::string_view beginning);

/// run     of a store of MLflow with several runs: the name or id of one
/// Errors  of no such format, without a step, several runs and none chosen: InputError; another
///         tool's file is named
RunLog read_run_log(const std::string& path, const std::string& run = "");

/// Another tool's file, recognised: `is a log of nccl-tests; orrery diagnose compares several ...`.
/// Empty: not known.
std::string stranger(std::string_view beginning);

}  // namespace orrery::scenarios
