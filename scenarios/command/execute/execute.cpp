// orrery execute: runs the plan, on ranks that it starts on this machine or that a launcher
// started.

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <memory>

#include "executor/launch/spawn.hpp"
#include "executor/session/devices.hpp"
#include "executor/session/memory_check.hpp"
#include "executor/session/process_limits.hpp"
#include "scenarios/command/commands.hpp"
#include "scenarios/command/execute/execute_events.hpp"
#include "scenarios/command/question_flags.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/ending.hpp"
#include "scenarios/command/terminal/whole_number.hpp"
#include "scenarios/question/execution_question.hpp"
#include "scenarios/report/result.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::scenarios {

namespace {

using executor::Launcher;
using executor::Placement;

struct ExecuteFlags {
  QuestionFlags question;
  executor::SessionOptions options;
  ExecuteOutput output;
  executor::PlacementFlags placement;
  executor::SessionWords words;
  int retries = 0;
  std::vector<std::string> arguments;  // as given, for the ranks that this process starts
};

/// Whether this process prints notes: rank 0 does, unless `orrery execute` itself started it,
/// because the parent process has printed them.
bool prints(const Placement& placed) {
  return placed.rank == 0 && placed.launcher != Launcher::orrery;
}

models::Question question_of(const ExecuteFlags& flags, const Placement& placed) {
  ExecutingMachine machine{.software = std::string{flags.options.backend.profile()}};
  if (flags.options.backend.has_gpus()) {
    const executor::VisibleGpu gpu = flags.options.backend.module().gpus().front();
    machine.gpu = InstalledGpu{gpu.name, gpu.memory};
  }
  if (placed.launcher != Launcher::alone && placed.local_ranks) {
    machine.ranks_per_node = *placed.local_ranks;
  }
  const ExecutionQuestion found =
      execution_question(flags.question.request(), machine, flags.placement.ranks);
  if (prints(placed) && !found.reason.empty()) fmt::print(stderr, "{}\n", found.reason);
  return found.question;
}

/// Lowers the trace detail to what can be recorded: with CUDA graphs, instructions, not operations.
void take_recordable(ExecuteFlags& flags, const models::Plan& plan, const Placement& placed) {
  const executor::TraceDetail most =
      executor::recordable(flags.options.detail, plan.kernels.graphs);
  const bool less = most != flags.options.detail;
  flags.options.detail = most;
  if (!less || !prints(placed)) return;
  fmt::print(stderr,
             "kernels in CUDA graphs cannot be timed individually: the step is recorded "
             "instruction by instruction\n");
}

int report_no_room(const executor::NoRoom& found, bool json) {
  const models::OutOfMemory& memory = found.found;
  if (json) {
    const Json out{{"rank", memory.rank},
                   {"needed_bytes", memory.needed.count()},
                   {"available_bytes", memory.available.count()}};
    print_document({{"fits", false}, {"out_of_memory", out}});
  }
  fmt::print(stderr, "does not fit: {} needed, {} available on {}\n", format(memory.needed),
             format(memory.available), printable(found.where));
  return exit_answer_is_no;
}

/// May the same ranks do it when they are started again? A peer, this machine or a signal that
/// nobody sent to end the run has failed; wrong input and a full disk fail again.
bool starts_again(int code) {
  using executor::Exit;
  constexpr int by_signal = 128;
  return code == static_cast<int>(Exit::peer_failed) ||
         code == static_cast<int>(Exit::local_failure) ||
         (code > by_signal && code != static_cast<int>(Exit::interrupted) &&
          code != static_cast<int>(Exit::terminated));
}

/// Starts the ranks, and again from the checkpoint as often as --retries says.
int start_ranks(const ExecuteFlags& flags, int ranks, const std::string& reason) {
  fmt::print(stderr, "{}; starting {} ranks here\n", reason, ranks);
  for (int left = flags.retries;; --left) {
    const int code = executor::spawn_ranks(
        {.arguments = flags.arguments,
         .ranks = ranks,
         .saves = flags.options.checkpoint.has_value(),
         .say = [](const std::string& text) { fmt::print(stderr, "{}\n", text); }});
    if (left == 0 || !starts_again(code)) return code;
    fmt::print(stderr,
               "the ranks ended with exit code {}; starting them again from {}, {} more {}\n", code,
               printable(*flags.options.checkpoint), left - 1, left == 2 ? "retry" : "retries");
  }
}

/// Errors  InputError where --retries would have no effect
void check_retries(const ExecuteFlags& flags, const Placement& placed) {
  if (flags.retries == 0 || placed.launcher == Launcher::orrery) return;
  if (!flags.options.checkpoint) throw InputError{"--retries", "needs --checkpoint DIR"};
  if (flags.options.fabric == executor::FabricKind::threads) {
    throw InputError{"--retries", "not with --fabric threads, whose ranks are one process"};
  }
  if (placed.launcher != Launcher::alone) {
    throw InputError{"--retries", fmt::format("not under {}, which starts the ranks again itself",
                                              name(placed.launcher))};
  }
}

int run(const ExecuteFlags& flags, const models::Question& question, const Placement& placed,
        executor::StopRequests& requests) {
  const int ranks = static_cast<int>(question.plan.gpus());
  const executor::SessionEvents events = printing_events(flags.output, flags.options.steps);
  const executor::Session session{question, flags.options, events, requests};
  if (flags.options.fabric == executor::FabricKind::threads) {
    return static_cast<int>(run_threads(session, ranks));
  }
  if (placed.launcher == Launcher::alone && (ranks > 1 || flags.retries > 0)) {
    return start_ranks(flags, ranks, placed.reason);
  }
  if (placed.ranks != ranks) {
    throw InputError{"--plan", fmt::format("needs {} ranks, {} started {}", ranks,
                                           name(placed.launcher), placed.ranks)};
  }
  if (prints(placed)) fmt::print(stderr, "rank 0 of {}: {}\n", ranks, placed.reason);
  return static_cast<int>(run_rank(session, placed));
}

/// Ranks that run as threads of this process; those that it starts have its limits.
std::int64_t threads_here(const ExecuteFlags& flags, const models::Question& question) {
  return flags.options.fabric == executor::FabricKind::threads ? question.plan.gpus() : 1;
}

int execute(ExecuteFlags& flags) {
  if (flags.output.trace == "-") {
    throw InputError{"--trace", "expected a file; standard output is the report's"};
  }
  executor::require_addresses();
  flags.words.trace = flags.output.trace.has_value();
  flags.words.explain = flags.output.explain;
  complete(flags.options, flags.words);
  const Placement placed = executor::placement(executor::environment(), flags.placement);
  check_retries(flags, placed);
  const models::Question question = question_of(flags, placed);
  take_recordable(flags, question.plan, placed);
  if (placed.launcher != Launcher::orrery) {  // else the parent process has checked
    if (const auto found = no_room(question, flags.options.backend, placed)) {
      return report_no_room(*found, flags.output.json);
    }
    require_limits(question, flags.options, threads_here(flags, question));
    if (flags.output.trace && placed.rank == 0) require_writable(*flags.output.trace);
  }
  executor::StopRequests requests;
  const executor::SignalRequests signals{requests};
  try {
    return run(flags, question, placed, requests);
  } catch (const executor::RunFailure& failure) {
    const bool terminated =
        failure.code() == executor::Exit::interrupted && requests.end() == SIGTERM;
    const executor::Exit why = terminated ? executor::Exit::terminated : failure.code();
    const int code = static_cast<int>(why);
    fmt::print(stderr, "{} ({})\n", failure.what(), executor::meaning(why));
    if (flags.output.json && placed.rank == 0) print_error(failure_of(code, failure.what()));
    return code;
  }
}

void add_run_flags(CLI::App& command, executor::SessionOptions& options, ExecuteFlags& flags) {
  command.add_option("--backend", flags.words.backend,
                     "Device: " + executor::backend_words() + "; cpu by default");
  command.add_option("--ranks", flags.placement.ranks,
                     "Number of ranks; sets the plan's degree of data parallelism");
  command.add_option("--rank", flags.placement.rank, "This process's rank, without a launcher");
  command.add_option("--address", flags.placement.address, "HOST:PORT where rank 0 listens");
  command.add_option("--steps", options.steps, "Number of training steps (10)");
  command.add_option("--seed", options.seed, "Random seed for parameters and tokens (1)")
      ->check(wrong_whole_number);
  command.add_option("--data", options.data, "Text files to train on, byte by byte");
  command.add_option("--init", options.initial,
                     "Parameters to begin with: a file of safetensors, its index, or the folder of "
                     "a checkpoint of the transformers library");
  command.add_option("--export", options.exported,
                     "File of safetensors for the parameters after the last step");
  command.add_option("--checkpoint", options.checkpoint, "Folder to resume from and write to");
  command.add_option("--checkpoint-every", flags.words.checkpoint_every,
                     "Steps or time between checkpoints: 100, \"5 min\" (10 min, or longer where "
                     "that would cost over 2 % of the time; 0: only on request and at the end)");
  command
      .add_option("--retries", flags.retries,
                  "How often to start the ranks again from the checkpoint when one has failed")
      ->check(CLI::Range(0, 1000));
  command.add_option("--resume", flags.words.resume,
                     "same (default): only with the data, batch, length and precision of the "
                     "checkpoint; changed: also with others");
  command.add_option("--fabric", flags.words.fabric,
                     "How ranks communicate: " + executor::fabric_words());
  command.add_option("--deadline", options.deadline, "Longest time of the run, in seconds");
  command.add_option("--stall", options.stall,
                     "Fail if one instruction takes longer than this many seconds (60)");
}

void add_output_flags(CLI::App& command, executor::SessionOptions& options, ExecuteFlags& flags) {
  ExecuteOutput& output = flags.output;
  command.add_option("--trace", output.trace, "Run one more step and write it as a Chrome trace");
  command.add_option("--trace-detail", flags.words.trace_detail,
                     "instructions (default) or operations");
  command.add_flag("--explain", output.explain,
                   "Run one more step and compare it with its prediction, operation by operation "
                   "(with CUDA graphs, instruction by instruction)");
  command.add_option("--log", options.log, "Append a JSON line per step");
  command.add_option("--metrics-port", options.metrics_port, "Port to serve Prometheus metrics on")
      ->check(CLI::Range(1, 65535));
  command.add_option("--metrics-address", options.metrics_address,
                     "IP address to serve metrics on (127.0.0.1)");
  command.add_option("--mlflow", options.mlflow,
                     "Folder (or file:///FOLDER) of MLflow's file store to add the run to");
  command.add_flag("--json", output.json, "One JSON document instead of the report");
}

}  // namespace

void add_execute(CLI::App& application, int& exit_code) {
  CLI::App& command = *application.add_subcommand(
      "execute", "Train for real: on this machine, or under mpirun, srun or torchrun");
  const auto flags = std::make_shared<ExecuteFlags>();
  flags->question.add_to(command);
  add_run_flags(command, flags->options, *flags);
  add_output_flags(command, flags->options, *flags);
  command.callback([flags, &exit_code] {
    flags->arguments = executor::own_arguments();
    try {
      exit_code = execute(*flags);
    } catch (const executor::RunFailure& failure) {  // before any rank has started
      exit_code = report_failure(failure_of(static_cast<int>(failure.code()), failure.what()),
                                 flags->output.json);
    }
  });
}

}  // namespace orrery::scenarios
