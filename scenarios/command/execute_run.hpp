#pragma once
// What `orrery execute` does on one rank: finds the others, runs the steps, writes checkpoints,
// tells rank 0 what it measured, and ends with the others when one of them cannot go on.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/interval.hpp"
#include "executor/launch/environment.hpp"
#include "executor/run/runner.hpp"
#include "models/prediction/prediction.hpp"
#include "sim/trace/trace.hpp"

namespace orrery::scenarios {

enum class Backend : std::uint8_t { cpu, cuda };
enum class FabricKind : std::uint8_t { tcp, mpi, threads, nccl };

struct ExecuteOptions {
  Backend backend = Backend::cpu;
  std::int64_t steps = 10;  // of the training: a resumed run goes on to there
  std::uint64_t seed = 1;
  std::optional<std::string> checkpoint;  // folder
  executor::CheckpointEvery checkpoint_every{};
  bool resume_changed = false;  // goes on though data, batch, length or precision are others
  std::optional<FabricKind> fabric;
  std::vector<std::string> data;
  std::optional<double> deadline;  // seconds, of the run
  double stall = 60;               // seconds, at one instruction
  std::optional<std::string> trace, log;
  executor::TraceDetail detail = executor::TraceDetail::none;
  std::optional<std::uint16_t> metrics_port;
  std::optional<std::string> metrics_address;  // 127.0.0.1
  bool json = false;
  bool explain = false;  // one more step against its prediction, by operation

  bool traces() const { return trace || explain; }
};

/// One step as all ranks saw it.
struct MeasuredStep {
  std::int64_t index = 0;
  double seconds = 0;  // of the slowest rank
  double loss = 0;
  double gradient_norm = 0;
  double loss_scale = 1;     // of backward, in fp16
  std::int64_t skipped = 0;  // updates left out so far
};

/// What rank 0 knows at the end.
struct Execution {
  std::int64_t ranks = 1;
  std::int64_t resumed_from = 0;  // steps
  std::string fabric, device;
  std::vector<MeasuredStep> steps;
  Bytes peak{}, resident{};                         // of the fullest rank
  executor::GraphCounts graphs{};                   // of rank 0
  std::optional<executor::HostWaits> host_waits{};  // of rank 0's fabric
  std::optional<Trace> trace{};                     // of the recorded step, all ranks
};

inline double in_seconds(Time time) {
  return static_cast<double>(time.count()) * 1e-12;
}

/// A rank's exit code; rank 0's is 0 with the results printed.
int run_rank(const models::Question& question, const ExecuteOptions& options,
             const executor::Placement& placed);
/// All ranks as threads of this process.
int run_threads(const models::Question& question, const ExecuteOptions& options, int ranks);

/// The results, as JSON or as a table, on standard output.
void print_execution(const models::Question& question, const models::Prediction& prediction,
                     const Execution& execution, const ExecuteOptions& options);

}  // namespace orrery::scenarios
