#include "scenarios/command/execute/execute_events.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "executor/launch/socket.hpp"
#include "scenarios/command/terminal/ending.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::chrono::milliseconds between_lines{500};

/// Prints a line per step, at most one every half second.
class StepLines {
 public:
  explicit StepLines(std::int64_t steps) : steps_{steps} {}

  void operator()(const executor::MeasuredStep& step) {
    if (step.skipped > 0 && !std::isfinite(step.gradient_norm)) {
      fmt::print(stderr, "step {} of {}  gradients are not finite: no update{}\n", step.index + 1,
                 steps_, step.loss_scale > 1 ? ", loss scale halved" : "");
    }
    const auto now = executor::Clock::now();
    if (now < next_line_ && step.index + 1 < steps_) return;
    next_line_ = now + between_lines;
    fmt::print(stderr, "step {} of {}  loss {:.4f}  {:.4g} tokens/s\n", step.index + 1, steps_,
               step.loss, step.tokens / step.seconds);
  }

 private:
  std::int64_t steps_;
  executor::Deadline next_line_{};
};

/// Prints why the run failed: a line on stderr from the rank that reports the verdict, a JSON
/// document on stdout from rank 0.
void print(const executor::SessionEnd& end, bool json) {
  const executor::Verdict& verdict = end.verdict;
  if (end.reports) {
    fmt::print(stderr, "{} ({})\n", printable(verdict.why), executor::meaning(verdict.code));
  }
  if (json && end.rank == 0) print_error(failure_of(static_cast<int>(end.code), verdict.why));
}

}  // namespace

executor::SessionEvents printing_events(const ExecuteOutput& output, std::int64_t steps) {
  return {.note = [](const std::string& line) { fmt::print(stderr, "{}\n", line); },
          .step = StepLines{steps},
          .done = [output](const executor::FinishedRun& run) { print_execution(run, output); },
          .failed = [json = output.json](const executor::SessionEnd& end) { print(end, json); },
          .stuck = [](executor::Exit code) { std::_Exit(static_cast<int>(code)); }};
}

}  // namespace orrery::scenarios
