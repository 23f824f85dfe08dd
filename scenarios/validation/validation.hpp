#pragma once
// Predicted against measured, run by run. Every run that can be simulated is; those that are not
// comparable are listed and not scored.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/prediction/error/evidence.hpp"
#include "models/prediction/fit.hpp"
#include "models/software/software.hpp"
#include "scenarios/search/workers.hpp"
#include "scenarios/validation/runs/measured_run.hpp"
#include "scenarios/validation/statistics.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// Group of runs with sharded gradients: stacks are fitted to whole gradients only.
inline constexpr const char* sharded_runs = "ZeRO-2, ZeRO-3 and FSDP";

/// Group of runs with context parallelism, to which no stack is fitted either.
inline constexpr const char* context_runs = "context parallelism";

/// Group of runs whose sources came after the last fit, of whichever task and strategy: no fit uses
/// them.
inline constexpr const char* new_source_runs = "runs of new sources";

/// Group of runs of models with Mamba-2 or delta rules, which no fit uses either.
inline constexpr const char* recurrent_runs = "recurrent layers";

/// The group outside the main score that a run belongs to, by its task or format, or else as its
/// line states; empty: the main score.
std::string group_apart(const MeasuredRun& run);

/// The result of one run.
struct RunResult {
  std::size_t row = 0;              // in the list of runs
  std::string skipped_because;      // empty: simulated
  std::string not_scored_because;   // empty: scored
  std::string apart;                // the group that it is scored in; empty: the main score
  std::optional<double> predicted;  // step time, seconds
  std::optional<double> error_pct;  // 100 (predicted / measured - 1)
  std::optional<double> p10, p90;   // of the step time, seconds
  std::optional<Bytes> predicted_memory, measured_memory;
  models::MemoryNeed need;  // of the fullest GPU; predicted_memory is the stack's reported part
  bool fits = true;         // with the least that it may need; if recomputation is not stated,
                            // with all layers recomputed
  std::vector<std::string> assumptions;
  int fallback_curves = 0;
  models::RunTraits traits;             // of the question
  std::string largest_part;             // of the predicted step
  std::string peak;                     // model size and GPU peak (models::size_and_peak)
  double mfu = 0;                       // of the measured step
  std::string title;                    // "GPT 1T with megatron-lm"
  std::string profile, profile_limits;  // the stack's, and the limits that it states

  bool simulated() const { return skipped_because.empty(); }
  /// Counts in the figures of the whole file.
  bool scored() const { return counts() && apart.empty(); }
  /// Counts in the figures of its group.
  bool scored_apart() const { return counts() && !apart.empty(); }
  /// Counts in either.
  bool counts() const { return simulated() && not_scored_because.empty(); }
  /// Why it does not count in the figures of the whole file; empty if it does.
  std::string left_out_because() const;
};

/// By row: ln(measured / predicted) of runs with their source left out of all fits. Of a run that
/// is missing, no fit has used the source.
using UnseenErrors = std::map<std::size_t, double>;

/// A question to the reader about a time that is off by a factor of ten or more; empty if it is
/// not.
std::string doubt_of(const MeasuredRun& run, double predicted);

struct ValidationOptions {
  std::vector<models::Software> profiles;  // before the shipped ones
  unsigned threads = 0;                    // 0: as many as the machine has
  Progress progress;
};

/// Results in the order of `runs`, independent of the number of threads. If `progress` asks to
/// stop, the remaining runs have no prediction.
std::vector<RunResult> validate(const std::vector<MeasuredRun>& runs,
                                const ValidationOptions& options);

/// A column and its cells, by which errors are grouped.
struct Grouping {
  std::string column;
  std::vector<std::string> cells;  // by row
};

/// Errors of scored runs in percent, by the cell of each.
std::map<std::string, std::vector<double>> errors_by(const std::vector<RunResult>& results,
                                                     const std::vector<std::string>& cells);

/// At most `most` scored results, those with the largest `size` first.
std::vector<const RunResult*> worst_of(const std::vector<RunResult>& results, std::size_t most,
                                       double (*size)(const RunResult& each));

struct MemoryScore {
  std::size_t rows = 0;
  double median = 0, p90 = 0;  // of |error|, percent
};

/// How often the measured time lies between p10 and p90; 80 % if the intervals are right.
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
  std::size_t said_not_to_fit = 0;  // scored runs predicted not to fit, although they ran
  std::vector<GroupScores> apart;   // in the order of their first runs
};

/// A group of runs that is reported separately from the others.
struct GroupScores {
  std::string group;
  Scores scores;
};

/// Runs that are reported separately count only in their own group's figures, and in `rows` and
/// `simulated` of the whole file.
Scores scores_of(const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results,
                 const std::vector<Grouping>& groupings);

/// `validate --json`.
Json to_json(const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results,
             const Scores& scores);
/// What a record is made of.
struct RecordInputs {
  const std::vector<MeasuredRun>& runs;
  const std::vector<RunResult>& results;
  const Scores& scores;
  const Scores& unfitted;  // of the same runs by the generic profile
  const UnseenErrors& unseen;
};
/// The record of models/prediction/error/published_errors.hpp; `source` is the command that makes
/// it.
Json record_of(const RecordInputs& inputs, const std::string& source);
/// The generic profile, applied to the stacks of all runs.
models::Software generic_for_all(const std::vector<MeasuredRun>& runs);

/// The report as text: totals, a table for each grouping and for each group reported separately,
/// the `worst` runs, runs not scored or skipped and why, and implausible times.
std::string table_of(const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results,
                     const Scores& scores, std::size_t worst);

}  // namespace orrery::scenarios
