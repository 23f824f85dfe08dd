// Bindings of `execute`: the ranks of a run are threads of this process. Ranks queue steps and
// notes; the calling thread passes them to Python and handles Ctrl-C.

#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <csignal>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "executor/session/devices.hpp"
#include "executor/session/execution_json.hpp"
#include "executor/session/memory_check.hpp"
#include "executor/session/process_limits.hpp"
#include "python/attended.hpp"
#include "python/bindings.hpp"
#include "scenarios/comparison/recorded.hpp"
#include "scenarios/question/execution_question.hpp"
#include "scenarios/report/result.hpp"

namespace py = pybind11;

namespace orrery::scenarios {

namespace {

using executor::Exit;
using Text = std::optional<std::string>;

/// JSON and the comparison's report, both empty if the run ended before its last step; then the
/// exit code that the command would have.
using Executed = std::tuple<std::string, std::string, int>;

/// A queue of what ranks report, emptied by the calling thread.
class Mailbox {
 public:
  void add(const char* kind, std::string text) {
    const std::lock_guard guard{lock_};
    waiting_.emplace_back(kind, std::move(text));
  }
  /// Passes the queued reports to `watch`. Call with the GIL held.
  void deliver(const py::object& watch) {
    std::vector<std::pair<const char*, std::string>> all;
    {
      const std::lock_guard guard{lock_};
      all.swap(waiting_);
    }
    if (watch.is_none()) return;
    for (const auto& [kind, text] : all) watch(kind, text);
  }

 private:
  std::mutex lock_;
  std::vector<std::pair<const char*, std::string>> waiting_;
};

Json json_of(const executor::MeasuredStep& step) {
  return {{"step", step.index + 1},
          {"step_time_s", step.seconds},
          {"loss", step.loss},
          {"gradient_norm", step.gradient_norm},
          {"skipped_updates", step.skipped}};
}

/// The keyword arguments of `orrery.execute`.
struct ExecuteRequest {
  ScenarioRequest scenario;
  std::optional<std::int64_t> ranks;
  executor::SessionOptions options;
  executor::SessionWords words;
  Text trace;
};

/// Refuses fabrics other than those that connect threads of one process.
void refuse_processes(const std::optional<executor::FabricKind>& fabric) {
  if (!fabric || *fabric == executor::FabricKind::threads ||
      *fabric == executor::FabricKind::vendor) {
    return;
  }
  throw InputError{"fabric", "expected threads or nccl: all ranks are threads of this process"};
}

class ThreadedRun {
 public:
  ThreadedRun(ExecuteRequest request, const py::object& watch)
      : request_{std::move(request)}, watch_{watch} {}

  Executed run() {
    complete(request_.options, request_.words);
    refuse_processes(request_.options.fabric);
    const models::Question question = question_of();
    executor::SessionOptions& options = request_.options;
    options.detail = executor::recordable(options.detail, question.plan.kernels.graphs);
    if (const auto found = executor::no_room(question, options.backend, {})) return no(*found);
    executor::require_limits(question, options, question.plan.gpus());
    const executor::SessionEvents events = this->events();
    const Exit code = executor::run_threads({question, options, events, requests_},
                                            static_cast<int>(question.plan.gpus()));
    deliver();
    return {json_, comparison_, static_cast<int>(code)};
  }

  /// Call after `run` with the GIL held: raises the exception that Python raised, or else the
  /// reason why the run ended early. After Ctrl-C nothing is raised.
  void finish(Executed& executed) {
    auto& [json, comparison, code] = executed;
    if (attended_.interrupted()) {
      code = static_cast<int>(Exit::interrupted);
      if (json.empty()) json = Json{{"steps", steps_}}.dump();
    } else if (json.empty()) {
      if (Exit{code} == Exit::wrong_input) throw InputError{why_};
      throw executor::RunFailure{Exit{code}, why_};
    }
  }

 private:
  models::Question question_of() {
    ExecutingMachine machine{.software = std::string{request_.options.backend.profile()}};
    if (request_.options.backend.has_gpus()) {
      const executor::VisibleGpu gpu = request_.options.backend.module().gpus().front();
      machine.gpu = InstalledGpu{gpu.name, gpu.memory};
    }
    ExecutionQuestion found = execution_question(request_.scenario, machine, request_.ranks);
    if (!found.reason.empty()) mailbox_.add("note", found.reason);
    return std::move(found.question);
  }

  executor::SessionEvents events() {
    executor::SessionEvents events;
    events.note = [this](const std::string& line) { mailbox_.add("note", line); };
    events.step = [this](const executor::MeasuredStep& step) {
      steps_.push_back(json_of(step));
      Json reported = steps_.back();
      reported["tokens"] = step.tokens;
      mailbox_.add("step", reported.dump());
    };
    events.done = [this](const executor::FinishedRun& run) { take(run); };
    events.failed = [this](const executor::SessionEnd& end) {
      if (end.rank == 0) why_ = end.verdict.why;
    };
    events.waiting = [this] { deliver(); };
    return events;
  }

  void take(const executor::FinishedRun& run) {
    const executor::Execution& execution = run.execution;
    if (request_.trace) write_trace(*execution.trace, *request_.trace);
    Json json = to_json(run);
    if (request_.words.explain && !execution.steps.empty()) {
      const Comparison comparison =
          compare_recorded(run.question, run.prediction, *execution.trace);
      json["comparison"] = to_json(comparison);
      comparison_ = comparison_report(comparison, false);
    }
    json_ = json.dump();
  }

  /// Passes reports to Python. Ctrl-C asks the run to end: after its step if it writes checkpoints;
  /// at once if it does not, or on a second Ctrl-C. An exception raised by `watch` has the same
  /// effect.
  void deliver() {
    if (attended_.attend([this] { mailbox_.deliver(watch_); })) return;
    requests_.ask_to_end(SIGINT);
  }

  static Executed no(const executor::NoRoom& found) {
    const models::OutOfMemory& memory = found.found;
    const Json out{{"rank", memory.rank},
                   {"needed_bytes", memory.needed.count()},
                   {"available_bytes", memory.available.count()}};
    return {Json{{"fits", false}, {"out_of_memory", out}}.dump(), "", 1};
  }

  ExecuteRequest request_;
  const py::object& watch_;
  executor::StopRequests requests_;
  Attended attended_;
  Mailbox mailbox_;
  Json steps_ = Json::array();  // rank 0's, so far
  std::string json_, comparison_, why_;
};

Executed execute(const Text& scenario, const Text& model, const Text& cluster, const Text& plan,
                 const Text& software, const std::vector<std::pair<std::string, std::string>>& set,
                 const Text& backend, std::optional<std::int64_t> ranks, std::int64_t steps,
                 std::uint64_t seed, const std::vector<std::string>& data, const Text& init,
                 const Text& export_to, const Text& checkpoint, const Text& checkpoint_every,
                 const Text& resume, const Text& fabric, std::optional<double> deadline,
                 double stall, const Text& trace, const Text& trace_detail, bool explain,
                 const Text& log, std::optional<std::uint16_t> metrics_port,
                 const Text& metrics_address, const Text& mlflow, const py::object& watch) {
  ExecuteRequest request;
  request.scenario = {.scenario = scenario, .parts = {model, cluster, plan, software}};
  for (const auto& [pointer, text] : set) {
    request.scenario.changes.emplace_back(pointer, Document::parse(text, pointer).json());
  }
  request.ranks = ranks;
  executor::SessionOptions& options = request.options;
  options.steps = steps;
  options.seed = seed;
  options.checkpoint = checkpoint;
  options.initial = init;
  options.exported = export_to;
  options.data = data;
  options.deadline = deadline;
  options.stall = stall;
  options.log = log;
  options.metrics_port = metrics_port;
  options.metrics_address = metrics_address;
  options.mlflow = mlflow;
  request.words = {.backend = backend,
                   .fabric = fabric,
                   .checkpoint_every = checkpoint_every,
                   .resume = resume,
                   .trace_detail = trace_detail,
                   .trace = trace.has_value(),
                   .explain = explain};
  request.trace = trace;
  ThreadedRun run{std::move(request), watch};
  Executed executed = [&] {
    const py::gil_scoped_release unlocked;
    return run.run();
  }();
  run.finish(executed);
  return executed;
}

}  // namespace

void bind_execution(py::module_& module) {
  using py::arg;
  module.def("execute", &execute, py::kw_only(), arg("scenario"), arg("model"), arg("cluster"),
             arg("plan"), arg("software"), arg("set"), arg("backend"), arg("ranks"), arg("steps"),
             arg("seed"), arg("data"), arg("init"), arg("export"), arg("checkpoint"),
             arg("checkpoint_every"), arg("resume"), arg("fabric"), arg("deadline"), arg("stall"),
             arg("trace"), arg("trace_detail"), arg("explain"), arg("log"), arg("metrics_port"),
             arg("metrics_address"), arg("mlflow"), arg("watch"));
}

}  // namespace orrery::scenarios
