#pragma once
// A prediction as JSON (design: `orrery simulate --json`), as text for people and as a trace.

#include <optional>
#include <string>

#include "scenarios/scenario/scenario.hpp"
#include "sim/trace/trace.hpp"

namespace orrery::scenarios {

/// Every member that `simulate --json` documents; missing values are null. Deterministic: the same
/// bytes on every run.
/// tokens  to train on: adds days, GPU-hours and dollars, which are null without
Json to_json(const models::Question& question, const models::Prediction& prediction,
             std::optional<double> tokens = std::nullopt);

/// Training on a number of tokens, step after step, without failures and restarts.
struct TrainingTotals {
  double days = 0, gpu_hours = 0;
  std::optional<Money> cost{};  // where the cluster has a price
};
TrainingTotals totals_of(const models::Question& question, const models::Prediction& prediction,
                         double tokens);
TrainingTotals totals_of(std::int64_t gpus, const models::StepFigures& step, double tokens);

/// `evaluation, why, contention_s, jitter_s, from_jobs_s, jobs[], links[], losses[]`.
Json to_json(const models::NetworkAnswer& network);

/// What `--timing` adds: how long the answer took, as `wall_time_s`.
Json wall_time_json(const models::Prediction& prediction, double load_seconds);

/// The report: a table, the waterfall from ideal to predicted, memory by stage, days and dollars
/// for `tokens`, the published figure next to the predicted one, assumptions.
struct ReportOptions {
  bool explain = false;
  std::optional<double> tokens;
  std::optional<Published> published;
  std::string whole_run{};  // the training with failures and restarts, in one line
  int width = 100;          // columns
  bool colour = false;      // ANSI, on a terminal
};
std::string report(const models::Question& question, const models::Prediction& prediction,
                   const ReportOptions& options);

/// The predicted step as a trace: the first rank of each class is a process, each of
/// its queues a thread.
///   instructions  what the schedule says, and the host's part of each
///   operations    every kernel, collective, transfer and launch; FLOPs and bytes are charged
///                 once, so their sums are the Program's ledger
/// `args.id` is "rank/instruction" or "rank/instruction/block.layer/operation".
/// Its note `peak_memory_bytes` is that of the worst rank.
enum class TraceDetail : std::uint8_t { instructions, operations };
Trace trace_of(const models::Prediction& prediction, TraceDetail detail);

/// Errors  OutputError
void write_trace(const Trace& trace, const std::string& path);

}  // namespace orrery::scenarios
