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

/// Events that print progress and failures on stderr and the results on stdout; if a rank is stuck,
/// its process exits.
/// steps  steps of the training, for the progress lines
executor::SessionEvents printing_events(const ExecuteOutput& output, std::int64_t steps);

/// The results on standard output, as JSON or as a table, and the trace in its file.
void print_execution(const executor::FinishedRun& run, const ExecuteOutput& output);

}  // namespace orrery::scenarios
