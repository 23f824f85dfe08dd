#pragma once
// A run of a plan on this machine's ranks, or one rank of a run that a launcher started: the ranks
// find each other, take the steps, write checkpoints, send their measurements to rank 0, and end
// together when one of them cannot go on. Nothing here prints or exits: what happens is reported
// through SessionEvents, and a caller asks for the end through StopRequests.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/interval.hpp"
#include "executor/launch/environment.hpp"
#include "executor/launch/signals.hpp"
#include "executor/launch/vital_signs.hpp"
#include "executor/module/gpu_vendors.hpp"
#include "executor/run/runner.hpp"
#include "models/prediction/prediction.hpp"
#include "sim/trace/trace.hpp"

namespace orrery::executor {

/// `vendor` is the collective library of the backend's GPUs.
enum class FabricKind : std::uint8_t { tcp, mpi, threads, vendor };

/// Options of a run.
struct SessionOptions {
  Backend backend{};
  std::int64_t steps = 10;  // of the whole training: a resumed run continues up to it
  std::uint64_t seed = 1;
  std::optional<std::string> checkpoint{};  // folder
  CheckpointEvery checkpoint_every{};
  std::optional<std::string> initial{};   // safetensors file with the initial parameters
  std::optional<std::string> exported{};  // ... for the parameters after the last step
  bool resume_changed = false;  // resume although data, batch, length or precision changed
  std::optional<FabricKind> fabric{};
  std::vector<std::string> data{};         // text files; empty: synthetic tokens
  std::optional<double> deadline{};        // seconds, of the run
  double stall = 60;                       // seconds, at one instruction
  std::optional<std::string> log{};        // a JSON line per step is appended there
  TraceDetail detail = TraceDetail::none;  // of one more step, recorded after the last one
  std::optional<std::uint16_t> metrics_port{};
  std::optional<std::string> metrics_address{};  // nullopt: 127.0.0.1
  std::optional<std::string> mlflow{};           // a folder, or file:///FOLDER
};

/// Options as words of the command line; nullopt leaves an option as it is.
struct SessionWords {
  std::optional<std::string> backend{}, fabric{}, checkpoint_every{}, resume{}, trace_detail{};
  bool trace = false;    // one more step is recorded
  bool explain = false;  // ... operation by operation
};

/// Applies the words to the options, and checks all options.
/// Errors  InputError naming the flag: `--steps: expected 1 or more, found 0`
void complete(SessionOptions& options, const SessionWords& words);

/// One step as all ranks saw it.
struct MeasuredStep {
  std::int64_t index = 0;
  double seconds = 0;  // of the slowest rank; in SessionEvents::step, of rank 0
  double tokens = 0;   // that it trained on
  double loss = 0;
  double gradient_norm = 0;
  double loss_scale = 1;     // of backward, in fp16
  std::int64_t skipped = 0;  // updates skipped so far
  InputTimes input{};        // of the rank for which each took longest
};

/// The results of a run, as rank 0 collects them.
struct Execution {
  std::int64_t ranks = 1;
  std::int64_t resumed_from = 0;  // steps
  std::string fabric, device;
  std::vector<MeasuredStep> steps;
  Bytes peak{}, resident{};               // of the fullest rank
  Bytes host{};                           // ... for what is offloaded, in host memory
  GraphCounts graphs{};                   // of rank 0
  RoutedBytes routed{};                   // of all ranks
  double imbalance = 1;                   // of experts in the last step, as a plan states it
  ReadAhead ahead{};                      // of every rank that reads
  std::optional<HostWaits> host_waits{};  // of rank 0's fabric
  std::optional<Trace> trace{};           // of the recorded step, all ranks
};

/// A finished run with the question that it answers, as rank 0's device can run it.
struct FinishedRun {
  const models::Question& question;
  const models::Prediction& prediction;
  const Execution& execution;
};

/// Why a rank ended before its last step.
struct SessionEnd {
  Verdict verdict{};  // the first failure of all
  int rank = 0;
  Exit code = Exit::done;  // of this rank
  bool reports = false;    // this rank is the one that reports the verdict to the user
};

/// Callbacks; each may be empty. All but `done` and `step` may be called by any thread, also
/// concurrently.
struct SessionEvents {
  std::function<void(const std::string&)> note{};   // a line for people: a warning, a choice
  std::function<void(const MeasuredStep&)> step{};  // by rank 0, after each
  std::function<void(const FinishedRun&)> done{};   // by rank 0; what it throws ends the run
  std::function<void(const SessionEnd&)> failed{};  // by each rank that ends early
  /// A rank's thread did not end within a few seconds of being asked to; `failed` was called
  /// before. The caller can end the process, or let the rank finish its instruction.
  std::function<void(Exit)> stuck{};
  std::function<void()> waiting{};  // by the caller of run_threads, some twenty times a second
};

/// What a run is given; all of it outlives the run.
struct Session {
  const models::Question& question;
  const SessionOptions& options;
  const SessionEvents& events;
  StopRequests& requests;
};

/// Runs one rank in this thread, after waiting for the others; returns its exit code. Rank 0's is
/// `done` once `events.done` has returned.
Exit run_rank(const Session& session, const Placement& placed);
/// Runs all ranks as threads of this process. Returns the exit code of the first rank that failed
/// by its own fault, else that of its peers.
Exit run_threads(const Session& session, int ranks);

/// The exit code of a run that a signal ended without a checkpoint.
Exit exit_of_signal(int signal);

}  // namespace orrery::executor
