#pragma once
// A real run next to the prediction of its scenario: traces of PyTorch's profiler by class, shape
// and collective, or logs of which only step times are known; the few changes that would explain
// the difference; the profile and site that the run suggests.

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/runback/profiled_rank.hpp"
#include "scenarios/runback/run_log.hpp"
#include "scenarios/whatif/measured_step.hpp"

namespace orrery::scenarios {

struct RunRequest {
  std::vector<std::string> files;        // all traces, or all logs
  ProfileOptions profile{};              // how their steps are found
  std::optional<std::string> fit_out{};  // a folder for software.json and cluster.json
  std::string run{};                     // of a store of MLflow: the run's name or id
};

/// A field of the plan of which the run's logs state another value; the prediction is with theirs.
struct StatedByLog {
  std::string pointer;  // "/plan/global_batch"
  std::int64_t scenario = 0, log = 0;
};

/// Time of a class in one step.
struct RunClassTime {
  RunClass which{};
  Time predicted{}, measured{};
  double kernels = 0;  // measured, of a step
};

/// Calls of one collective in a step; what one side lacks is empty.
struct RunCollective {
  CollectiveKey key;
  std::string communicator;  // predicted: "tp"
  std::optional<KernelTally> predicted, measured;
  /// The shortest that any of the traced ranks had, call by call: the rest is waiting for peers.
  std::optional<Time> transfer;
};

struct RunShape {
  MatrixShape shape;  // sorted
  std::optional<KernelTally> predicted, measured;
};

/// One change on the way from the predicted to the measured step, in the order applied.
struct RunChange {
  std::string cause, flags;
  double prior = 0;
  std::string basis;
  Time effect{};  // on the step, after those before it
};

/// A number of the profile or site that the run moves.
struct RunNumber {
  std::string pointer, before, after;
  bool of_site = false;
  double effect = 0;  // of what is left of its spread, on the step
};
struct RunFit {
  Json software, cluster;  // as --software and --cluster take them
  std::vector<RunNumber> numbers;
  double unexplained = 1;
  Time predicted{};  // with both
};

struct RunComparison {
  std::string scenario;
  models::Prediction prediction;
  std::string log_format;  // of logs; empty: of traces
  Time measured{};         // the step: median of logs, the middle steps of a trace
  StepStatistics steps;
  std::vector<StatedByLog> contradictions;  // of logs
  double tokens_per_second = 0;             // measured
  std::vector<ProfiledRank> ranks;          // traces
  std::size_t chosen = 0;                   // the rank that computes longest: classes are of it
  std::uint32_t rank_class = 0;             // predicted, of the same stage
  std::vector<RunClassTime> classes;        // add up to both steps
  std::vector<RunCollective> collectives;
  std::vector<RunShape> shapes;
  std::vector<RunChange> changes;
  Time unexplained{};                         // measured less predicted with all changes
  std::optional<ExplainedStep> alternatives;  // of logs: each cause alone
  std::vector<std::string> notes;
  std::optional<RunFit> fit;
};

/// Is the difference below what any two runs of one step differ by? It has no causes then.
inline bool agrees(double predicted_s, double measured_s) {
  constexpr double noise = 0.005;
  return std::abs(measured_s - predicted_s) < noise * predicted_s;
}
inline bool agrees(const RunComparison& found) {
  return agrees(seconds(found.prediction.step), seconds(found.measured));
}
/// What a report says instead of causes then.
inline constexpr std::string_view words_of_agreement =
    "nothing is left to explain: the two differ by less than 0.5 %";

/// Errors  a file of another kind (it names the command that reads it), traces and logs together,
///         logs of different runs, a batch of the logs that the plan cannot have: InputError;
///         fit_out: OutputError
RunComparison compare_run(const Scenario& scenario, const RunRequest& request);

/// `predicted_s, measured_s, difference_s, error_pct, source, steps{...}, contradictions[{pointer,
/// scenario, log}], ranks[], classes[],
/// idle{}, collectives[], shapes[], kernels[], causes[], unexplained_s, alternatives, fit, notes`.
Json to_json(const RunComparison& found);
std::string text_of(const RunComparison& found, int width, bool colour);

// Parts of compare_run.

/// The predicted classes of the ranks of one stage.
ClassTimes predicted_classes(const models::Prediction& prediction, std::uint32_t rank_class);

/// Greedily, the change that makes the measured classes likeliest, given its prior, then the next.
///   score = sum of ln prior - sum over classes of cost((measured - predicted) / spread)
///   spread^2 = (3 % of the class)^2 + (1 % of the step)^2;  cost: squares / 2, linear beyond 3
/// A change must gain 2 to be taken. Numbers of the profile move to where their class agrees; their
/// prior is exp(-(move / spread between stacks)^2 / 2), no less than that of a slow machine where
/// one would show so.
/// Source  spreads between stacks: profile_numbers.hpp; 3 % and 1 %: assumed, what a class of
/// kernels
///         varies by from step to step
void add_changes(const Scenario& scenario, const models::Question& question, RunComparison& found);

/// Moves the numbers of profile and site by Bayesian regression of the classes' differences (of
/// logs, of the step's). Spreads are those between stacks; of a factor whose class a trace shows at
/// least 0.25, as single machines differ by more. Shares of the network become the site's, all
/// other numbers the profile's.
RunFit fit_run(const Scenario& scenario, const RunComparison& found);

}  // namespace orrery::scenarios
