#pragma once
// Reports every step of a run, on rank 0: as a line of JSON in a file, and as numbers on the
// metrics page.

#include <optional>

#include "executor/session/metrics_page.hpp"
#include "executor/session/session.hpp"
#include "sim/output/line_log.hpp"

namespace orrery::executor {

/// The file and the page of one run.
class StepLog {
 public:
  /// Errors  OutputError of the file; as MetricsPage
  StepLog(const models::Question& question, const SessionOptions& options);

  /// The run resumes after so many steps: later ones, of a run that was killed before it wrote the
  /// next checkpoint, are removed from the end of the file, as they are taken again.
  void resume_after(std::int64_t steps);
  void add(const MeasuredStep& step);

 private:
  void show(const MeasuredStep& step, double rate);

  double trained_ = 0;  // tokens
  std::optional<LineLog> file_;
  std::optional<MetricsPage> page_;
};

}  // namespace orrery::executor
