#pragma once
// A training from its first to its last step: days, dollars and energy as ranges, and where the
// time goes. The step is predicted, failures and restarts are simulated between checkpoints
// (renewal.hpp), everything that nobody knows beforehand is drawn once per simulated run. Leaves
// out runs that are abandoned and started again, and the work before a final run.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/prediction/fit.hpp"
#include "scenarios/scenario/scenario_request.hpp"
#include "scenarios/search/workers.hpp"
#include "scenarios/whole_run/run_inputs.hpp"

namespace orrery::scenarios {

/// A phase with its step predicted.
struct PlannedPhase {
  double tokens = 0;
  std::int64_t seq_len = 0, global_batch = 0, gpus = 0, nodes = 0;
  std::int64_t paid_gpus = 0;  // also idle ones, and spares
  std::int64_t steps = 0;
  Seconds step{};
  double low = 0, high = 0;  // p10 = step e^-low, p90 = step e^high
  double mfu = 0;
  double data_wait = 0;  // share of the step in which it waits for its input

  Seconds alone() const { return step * static_cast<double>(steps); }
};

/// Everything about a run that is a number; independent of models and plans.
struct RunModel {
  std::vector<PlannedPhase> phases;
  Recovery recovery;
  RatePrior rate;
  double node_size = 1;  // in nodes of 8 GPUs
  double restart_spread = 0.5;
  std::optional<QuantileTable> intervals;
  std::optional<Spares> spares;
  std::optional<Replicas> replicas;
  Seconds interval{}, optimum{}, stall{}, write{}, durable_stall{};
  std::int64_t durable_every = 1;
  Bytes bytes{};
  /// A store that steps read from and checkpoints are written to: how much longer reads take
  /// meanwhile, and writes.
  double reads_slowed = 1, writes_slowed = 1;
  bool has_data = false;
  double residual_median = 1, residual_spread = 0;
  std::optional<Recurring> evaluation, maintenance;
  std::optional<SpotInputs> spot;
  std::vector<NodePool> pools;    // that the job's nodes are of; empty: of one
  double sent_between_pools = 0;  // GB that leave one of them for another
  Money between_pools{};          // what these cost
  SizeInputs sizes;
  /// Instead of the step's range: the whole run over the time of steps alone, in logarithms.
  std::optional<std::pair<double, double>> all_in;
  std::int64_t paid_gpus = 0;          // of the longest phase
  bool fits = true;                    // in memory, in every phase
  models::Fit fit = models::Fit::yes;  // of the phase that fits worst
  double fit_probability = 1;          // least share of measured peaks by which a phase would fit
  std::optional<Price> price;
  std::string price_source;
  Power running{}, pausing{};  // of the whole job
  double pue = 1, co2_kg_per_kwh = 0;

  Seconds alone() const;
  /// Share of the time of steps in which they wait for input.
  double data_wait() const;
  double gpu_hours_alone() const;
  /// Whether expected lengths have a closed form: one level, Poisson failures, no pool.
  bool has_closed_form() const;
};

/// Quantiles and mean over simulated runs.
struct RunRange {
  double p10 = 0, p50 = 0, p90 = 0, mean = 0;
};

/// A cause, and its share of the time.
using Share = std::pair<std::string, double>;

struct WholeRun {
  RunModel model;
  std::uint64_t seed = 1;
  std::size_t samples = 0;
  RunRange days, gpu_hours, ettr, goodput, energy_mwh, co2_t;
  std::optional<RunRange> cost;
  RunRange interruptions;
  std::optional<double> expected_days;  // by the closed form, over the same draws
  double error_of_mean = 0;             // standard error of days.mean
  std::vector<Share> ledger;            // adds up to 1
  std::vector<Share> sensitivity;       // parts of ln(p90 / p10), the widest first
  std::vector<double> sorted_days, sorted_gpu_hours, sorted_cost;
  /// By pool, mean over runs: GPU-hours paid for, and the share of its nodes that were there.
  std::vector<std::pair<double, double>> pool_hours;
  double days_saved_by_fast_restarts = 0;  // restarts twice as fast, of the median
  std::vector<double> failure_days;        // of the run of median length

  double probability_within(double days) const;
  /// Days in which so large a share of the runs is done.
  double days_within(double share) const;
};

/// Simulates `samples` runs; the same bytes for any number of threads.
WholeRun simulate_runs(const RunModel& model, std::size_t samples, std::uint64_t seed,
                       const Workers& workers);

struct WholeRunRequest {
  ScenarioRequest scenario{};
  std::optional<std::string> tokens{}, deadline{}, budget{}, failures{};
  double confidence = 0.8;
  std::size_t samples = 2000;
  std::uint64_t seed = 1;
  bool all_in = false;
  unsigned threads = 0;
};

struct WholeRunReport {
  std::string scenario, model_name, cluster, software;
  double tokens = 0;
  WholeRun run;
  double confidence = 0.8;
  std::optional<double> deadline_days;
  std::optional<Money> budget;
  std::vector<std::string> assumptions;
  bool all_in = false, stopped = false;

  double deadline_probability() const { return run.probability_within(*deadline_days); }
  double budget_probability() const;
  /// Fits, and keeps deadline and budget with the confidence asked for.
  bool meets() const;
};

/// The numbers of a run, from its scenario.
RunModel model_of(const Scenario& scenario, RunInputs& run, double tokens, bool all_in);
/// Few runs, for an answer in one line.
WholeRun whole_run_of(const Scenario& scenario, double tokens, std::size_t samples);
/// Of a plan that a search found. Errors  failures so frequent that it never ends: InputError
WholeRun whole_run_of(const models::Question& question, double tokens, std::size_t samples,
                      RunInputs run);
/// Errors  InputError
WholeRunReport train(const WholeRunRequest& request, const Progress& progress);

Json to_json(const WholeRunReport& report);
std::string text_of(const WholeRunReport& report, int width, bool colour);
/// Tokens against days as a fan, the ledger, and the probability of being done by a day (SVG).
std::string picture_of(const WholeRunReport& report);
/// "82 days, 70 to 101 in 8 of 10 cases": what `simulate --tokens` says of a whole run.
std::string in_one_line(const WholeRun& run);

/// Published runs over predicted ones, steps alone: 46 billed runs, in logarithms, and quantiles.
struct PublishedRuns {
  int runs = 46;
  double mean = 0.358, deviation = 0.355;
  double p10 = 0.93, p50 = 1.42, p90 = 2.22;
};
inline constexpr PublishedRuns published_runs{};

}  // namespace orrery::scenarios
