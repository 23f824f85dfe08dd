#pragma once
// Reports every step of a run, on rank 0: as a line of JSON in a file, as numbers on the metrics
// page, next to those of the machine, and in MLflow's file store.

#include <chrono>
#include <optional>

#include "executor/session/machine_metrics.hpp"
#include "executor/session/metrics_page.hpp"
#include "executor/session/mlflow_store.hpp"
#include "executor/session/session.hpp"
#include "sim/output/line_log.hpp"

namespace orrery::executor {

/// The file and the page of one run.
class StepLog {
 public:
  /// Errors  OutputError of the file; as MetricsPage and MlflowStore
  StepLog(const models::Question& question, const SessionOptions& options);

  /// What the simulator predicts for a step of this run.
  void expect(Time step, double model_flops);

  /// The run resumes after so many steps: later ones, of a run that was killed before it wrote the
  /// next checkpoint, are removed from the end of the file, as they are taken again.
  void resume_after(std::int64_t steps);
  void add(const MeasuredStep& step);
  /// After the last step.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  void show(const MeasuredStep& step, double rate);
  /// Once a second at most: /proc is read in a tenth of a millisecond.
  void show_machine();

  double trained_ = 0;      // tokens
  double stepping_ = 0;     // seconds in steps
  double model_flops_ = 0;  // of a step
  std::int64_t ranks_;
  Clock::time_point began_ = Clock::now();
  std::optional<Clock::time_point> machine_read_{};
  std::optional<LineLog> file_;
  std::optional<MetricsPage> page_;
  std::optional<GpuMetrics> gpus_;
  std::optional<MlflowStore> mlflow_;
};

}  // namespace orrery::executor
