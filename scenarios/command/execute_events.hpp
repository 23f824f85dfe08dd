#pragma once
// What `orrery execute` prints: lines on stderr while the run goes on, the results on stdout.

#include <optional>
#include <string>

#include "executor/session/session.hpp"

namespace orrery::scenarios {

struct ExecuteOutput {
  std::optional<std::string> trace;  // file of the recorded step
  bool explain = false;              // the recorded step against its prediction, by operation
  bool json = false;
};

/// steps  of the training, for the lines of progress
/// Where a rank is stuck, the process exits.
executor::SessionEvents printing_events(const ExecuteOutput& output, std::int64_t steps);

/// The results on standard output, as JSON or as a table, and the trace in its file.
void print_execution(const executor::FinishedRun& run, const ExecuteOutput& output);

}  // namespace orrery::scenarios
