#pragma once
// Predicted against measured, run by run. Every run that today's models reach is simulated; those
// that cannot count are shown and not scored.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/prediction/fit.hpp"
#include "models/software/software.hpp"
#include "scenarios/search/workers.hpp"
#include "scenarios/validation/measured_run.hpp"
#include "scenarios/validation/statistics.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// Group of the runs that no stack is fitted to: its numbers stand for whole gradients.
inline constexpr const char* sharded_runs = "ZeRO-2, ZeRO-3 and FSDP";

/// ... and those whose ranks share a sequence, in no fit either.
inline constexpr const char* context_runs = "context parallelism";

/// The group that a run is scored in by itself: what it trains, or in which format, before the
/// group that its line names; empty: with the others.
std::string group_apart(const MeasuredRun& run);

/// What became of one run.
struct RunResult {
  std::size_t row = 0;              // in the list of runs
  std::string skipped_because;      // empty: simulated
  std::string not_scored_because;   // empty: scored
  std::string apart;                // the group that it is scored in by itself; empty: the others
  std::optional<double> predicted;  // step time, seconds
  std::optional<double> error_pct;  // 100 (predicted / measured - 1)
  std::optional<double> p10, p90;   // of the step time, seconds
  std::optional<Bytes> predicted_memory, measured_memory;
  models::MemoryNeed need;  // of the fullest GPU; predicted_memory is what its stack reports of it
  bool fits = true;         // with the least that it may need; where a line leaves recomputation
                            // open, with all layers recomputed
  std::vector<std::string> assumptions;
  int borrowed_curves = 0;
  std::string largest_part;             // of the predicted step
  std::string peak;                     // what is alike (models::size_and_peak)
  double mfu = 0;                       // of the measured step
  std::string title;                    // "GPT 1T with megatron-lm"
  std::string profile, profile_limits;  // the stack's, and what it says that it leaves out

  bool simulated() const { return skipped_because.empty(); }
  /// Counts in the figures of the whole file.
  bool scored() const { return counts() && apart.empty(); }
  /// Counts in the figures of its group.
  bool scored_apart() const { return counts() && !apart.empty(); }
  /// Counts in either.
  bool counts() const { return simulated() && not_scored_because.empty(); }
  /// Why it counts in no figure of the whole file; empty if it does.
  std::string left_out_because() const;
};

/// What a time ten times off the predicted one, or more, makes a reader ask; empty if it is not.
///   3697 s measured are 1000 times the 3.7 s predicted: is step_time_s in ms?
std::string doubt_of(const MeasuredRun& run, double predicted);

struct ValidationOptions {
  std::vector<models::Software> profiles;  // before the shipped ones
  unsigned threads = 0;                    // 0: as many as the machine has
  Progress progress;
};

/// Results in the order of `runs`, the same for any number of threads. Where progress says stop,
/// the runs that are left have no prediction.
std::vector<RunResult> validate(const std::vector<MeasuredRun>& runs,
                                const ValidationOptions& options);

/// A column and its cells, by which errors are distinguished.
struct Grouping {
  std::string column;
  std::vector<std::string> cells;  // by row
};

struct MemoryScore {
  std::size_t rows = 0;
  double median = 0, p90 = 0;  // of |error|, percent
};

/// How often the interval from p10 to p90 holds what was measured; 80 % if it is right.
struct IntervalScore {
  std::size_t rows = 0;
  double inside = 0;  // percent
};

struct GroupScores;

/// The figures of a whole file, or of a group of its runs.
struct Scores {
  std::size_t rows = 0, simulated = 0, scored = 0;
  std::optional<ErrorSummary> errors;
  std::optional<double> mean_over_stacks;  // of each stack's median, stacks of 10 or more
  std::vector<std::pair<std::string, std::map<std::string, ErrorSummary>>> by;
  Ranking ranking;
  std::optional<MemoryScore> memory;
  std::optional<IntervalScore> interval;
  std::size_t said_not_to_fit = 0;  // of those scored, all of which ran
  std::vector<GroupScores> apart;   // in the order of their first runs
};

/// A group of runs that is reported apart from the others.
struct GroupScores {
  std::string group;
  Scores scores;
};

/// Runs that are reported apart count in no figure but their own group's, and in `rows` and
/// `simulated` of the whole file.
Scores scores_of(const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results,
                 const std::vector<Grouping>& groupings);

/// `validate --json`.
Json to_json(const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results,
             const Scores& scores);
/// The record of models/prediction/published_errors.hpp; `unfitted` are the scores of the same runs
/// by the generic profile, and `source` the command that makes it.
Json record_of(const std::vector<RunResult>& results, const Scores& scores, const Scores& unfitted,
               const std::string& source);
/// A generic profile that stands for the stacks of all runs.
models::Software generic_for_all(const std::vector<MeasuredRun>& runs);

/// For people: totals, a table for each grouping and for each group reported apart, the `worst`
/// runs, which were not scored or skipped and why, and which times are hard to believe.
std::string table_of(const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results,
                     const Scores& scores, std::size_t worst);

}  // namespace orrery::scenarios
