// orrery execute: the plan for real, on this machine's ranks or on those that a launcher started.

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <memory>

#include "executor/launch/signals.hpp"
#include "executor/launch/spawn.hpp"
#include "scenarios/command/commands.hpp"
#include "scenarios/command/ending.hpp"
#include "scenarios/command/execute_backend.hpp"
#include "scenarios/command/execute_room.hpp"
#include "scenarios/command/execute_run.hpp"
#include "scenarios/command/question_flags.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

using executor::Launcher;
using executor::Placement;

struct ExecuteFlags {
  QuestionFlags question;
  ExecuteOptions options;
  executor::PlacementFlags placement;
  std::optional<std::string> fabric, backend, trace_detail, checkpoint_every, resume;
  std::vector<std::string> arguments;  // as given, for the ranks that we start
};

FabricKind fabric_of(const std::string& text) {
  if (text == "tcp") return FabricKind::tcp;
  if (text == "mpi") return FabricKind::mpi;
  if (text == "threads") return FabricKind::threads;
  if (text == "nccl") return FabricKind::nccl;
  throw InputError{"--fabric", fmt::format("expected tcp, mpi, threads or nccl, found '{}'", text)};
}

/// Times of a run, as flags say them: up to a year.
void check_seconds(const char* flag, double value) {
  constexpr double most = 365 * 86400;
  if (value > 0 && value <= most) return;
  throw InputError{flag,
                   fmt::format("expected seconds above 0, at most {}, found {}", most, value)};
}

void check_options(ExecuteFlags& flags) {
  ExecuteOptions& options = flags.options;
  if (flags.fabric) options.fabric = fabric_of(*flags.fabric);
  if (flags.backend) options.backend = backend_of(*flags.backend);
  if (options.fabric == FabricKind::nccl && options.backend != Backend::cuda) {
    throw InputError{"--fabric", "nccl needs --backend cuda"};
  }
  const std::string detail = flags.trace_detail.value_or("instructions");
  if (detail != "instructions" && detail != "operations") {
    throw InputError{"--trace-detail",
                     fmt::format("expected instructions or operations, found '{}'", detail)};
  }
  if (options.traces()) {
    options.detail = detail == "operations" || options.explain
                         ? executor::TraceDetail::operations
                         : executor::TraceDetail::instructions;
  }
  if (options.deadline) check_seconds("--deadline", *options.deadline);
  check_seconds("--stall", options.stall);
  if (options.steps < 1) {
    throw InputError{"--steps", fmt::format("expected 1 or more, found {}", options.steps)};
  }
  if (options.metrics_address && !options.metrics_port) {
    throw InputError{"--metrics-address", "needs --metrics-port"};
  }
  if (flags.checkpoint_every) {
    options.checkpoint_every = executor::parse_checkpoint_every(*flags.checkpoint_every);
    if (!options.checkpoint) throw InputError{"--checkpoint-every", "needs --checkpoint DIR"};
  }
  if (flags.resume) {
    options.resume_changed = *flags.resume == "changed";
    if (!options.resume_changed && *flags.resume != "same") {
      throw InputError{"--resume", fmt::format("expected same or changed, found '{}'",
                                               printable(*flags.resume, 60))};
    }
  }
}

std::int64_t member_or_1(const Json& json, const char* key) {
  const auto member = json.find(key);
  return member != json.end() && member->is_number_integer() ? member->get<std::int64_t>() : 1;
}

/// Are the cluster's devices the cores of a machine?
bool of_cores(const Scenario& scenario) {
  const Json kind =
      scenario.json().value(Json::json_pointer{"/cluster/node/scale_up/kind"}, Json{});
  return kind == "shared_memory";
}

/// What nobody named for another kind of machine becomes a host with a core per rank.
Home core_home(const QuestionFlags& asked, std::int64_t ranks) {
  if (asked.scenario && of_cores(asked.load())) return {};
  return {.cluster = "cpu-host x 1", .changes = {{"/cluster/node/gpus", ranks}}};
}

/// The scenario on as many ranks as asked for: --ranks sets the data degree. Software and cluster
/// are this executor's and this machine's where nobody named others.
models::Question question_of(const ExecuteFlags& flags, const Placement& placed) {
  QuestionFlags asked = flags.question;
  const bool gpus = flags.options.backend == Backend::cuda;
  if (!asked.parts.software) asked.parts.software = gpus ? "orrery-cuda" : "orrery-cpu";
  const bool at_home = asked.parts.cluster.has_value();
  if (!at_home && !asked.scenario) asked.parts.cluster = "cpu-host x 1";  // to read the plan
  const Json plan = asked.load().json().at("plan");
  const std::int64_t model_ranks = member_or_1(plan, "tensor") * member_or_1(plan, "pipeline");
  std::int64_t ranks = model_ranks * member_or_1(plan, "data");
  std::vector<std::pair<std::string, Json>> changes;
  if (flags.placement.ranks) {
    ranks = *flags.placement.ranks;
    if (ranks < 1 || model_ranks < 1 || ranks % model_ranks != 0) {
      throw InputError{"--ranks", fmt::format("expected a multiple of tensor x pipeline = {}, "
                                              "found {}",
                                              model_ranks, ranks)};
    }
    changes.emplace_back("/plan/data", ranks / model_ranks);
  }
  if (!at_home) {
    asked.parts.cluster = flags.question.parts.cluster;
    Home home = gpus ? gpu_home(asked, placed, ranks) : core_home(asked, ranks);
    if (home.cluster) asked.parts.cluster = home.cluster;
    changes.insert(changes.end(), home.changes.begin(), home.changes.end());
    if (placed.rank == 0 && placed.launcher != Launcher::orrery && !home.reason.empty()) {
      fmt::print(stderr, "{}\n", home.reason);
    }
  }
  return asked.load().replace(changes).question();
}

int start_ranks(const ExecuteFlags& flags, int ranks, const std::string& reason) {
  fmt::print(stderr, "{}; starting {} ranks here\n", reason, ranks);
  return executor::spawn_ranks(
      {.arguments = flags.arguments,
       .ranks = ranks,
       .saves = flags.options.checkpoint.has_value(),
       .say = [](const std::string& text) { fmt::print(stderr, "{}\n", text); }});
}

/// Told by whoever is not told by another of these processes.
void take_recordable(ExecuteFlags& flags, const models::Plan& plan, const Placement& placed) {
  const executor::TraceDetail most = executor::recordable(flags.options.detail, plan);
  const bool less = most != flags.options.detail;
  flags.options.detail = most;
  if (!less || placed.rank != 0 || placed.launcher == Launcher::orrery) return;
  fmt::print(stderr,
             "kernels launched as CUDA graphs have no times of their own: the step is recorded "
             "instruction by instruction\n");
}

int execute(ExecuteFlags& flags) {
  check_options(flags);
  const Placement placed = executor::placement(executor::environment(), flags.placement);
  const models::Question question = question_of(flags, placed);
  const int ranks = static_cast<int>(question.plan.gpus());
  take_recordable(flags, question.plan, placed);
  if (placed.launcher != Launcher::orrery) {  // else our parent has looked
    if (const auto found = no_room(question, flags.options, placed)) {
      return report(*found, flags.options);
    }
  }
  const executor::SignalWishes signals;
  try {
    if (flags.options.fabric == FabricKind::threads) {
      return run_threads(question, flags.options, ranks);
    }
    if (placed.launcher == Launcher::alone && ranks > 1) {
      return start_ranks(flags, ranks, placed.reason);
    }
    if (placed.ranks != ranks) {
      throw InputError{"--plan", fmt::format("asks for {} ranks, {} gives {}", ranks,
                                             name(placed.launcher), placed.ranks)};
    }
    if (placed.rank == 0 && placed.launcher != Launcher::orrery) {
      fmt::print(stderr, "rank 0 of {}: {}\n", ranks, placed.reason);
    }
    return run_rank(question, flags.options, placed);
  } catch (const executor::RunFailure& failure) {
    const bool terminated =
        failure.code() == executor::Exit::interrupted && executor::SignalWishes::end() == SIGTERM;
    const executor::Exit why = terminated ? executor::Exit::terminated : failure.code();
    const int code = static_cast<int>(why);
    fmt::print(stderr, "{} ({})\n", failure.what(), executor::meaning(why));
    if (flags.options.json && placed.rank == 0) print_error(failure_of(code, failure.what()));
    return code;
  }
}

}  // namespace

void add_execute(CLI::App& application, int& exit_code) {
  CLI::App& command = *application.add_subcommand("execute", "Run the plan for real");
  const auto flags = std::make_shared<ExecuteFlags>();
  ExecuteOptions& options = flags->options;
  flags->question.add_to(command);
  command.add_option("--backend", flags->backend, "cpu (default) or cuda");
  command.add_option("--ranks", flags->placement.ranks, "Ranks: sets the plan's data degree");
  command.add_option("--rank", flags->placement.rank, "This process's rank, without a launcher");
  command.add_option("--address", flags->placement.address, "HOST:PORT where rank 0 listens");
  command.add_option("--steps", options.steps, "Steps of the training (10)");
  command.add_option("--seed", options.seed, "Of parameters and tokens (1)");
  command.add_option("--data", options.data, "Text files to train on, byte by byte");
  command.add_option("--checkpoint", options.checkpoint, "Folder to resume from and write to");
  command.add_option("--checkpoint-every", flags->checkpoint_every,
                     "Steps or time between checkpoints: 100, \"5 min\" (10 min, more where that "
                     "costs over 2 % of the time; 0: only when asked, and at the end)");
  command.add_option("--resume", flags->resume,
                     "same (default): only with the data, batch, length and precision of the "
                     "checkpoint; changed: also with others");
  command.add_option("--fabric", flags->fabric, "tcp, mpi, threads or nccl");
  command.add_option("--deadline", options.deadline, "Seconds that the run may take");
  command.add_option("--stall", options.stall, "Seconds at one instruction that are too many (60)");
  command.add_option("--trace", options.trace, "Write one more step as a Chrome trace");
  command.add_option("--trace-detail", flags->trace_detail, "instructions (default) or operations");
  command.add_flag("--explain", options.explain,
                   "One more step against its prediction, operation by operation (with CUDA graphs "
                   "instruction by instruction)");
  command.add_option("--log", options.log, "Append a JSON line per step");
  command.add_option("--metrics-port", options.metrics_port, "Serve Prometheus metrics there")
      ->check(CLI::Range(1, 65535));
  command.add_option("--metrics-address", options.metrics_address,
                     "Number of the interface that serves them (127.0.0.1)");
  command.add_flag("--json", options.json, "One JSON document instead of the report");
  command.callback([flags, &exit_code] {
    flags->arguments = executor::own_arguments();
    exit_code = execute(*flags);
  });
}

}  // namespace orrery::scenarios
