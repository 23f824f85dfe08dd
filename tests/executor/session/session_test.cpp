#include "executor/session/session.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <mutex>
#include <stdexcept>

#include "executor/checkpoint/folder_lock.hpp"
#include "executor/session/execution_json.hpp"
#include "hardware/catalogue.hpp"
#include "sim/input/document.hpp"
#include "tests/executor/checkpoint/small_state.hpp"
#include "tests/executor/world.hpp"

namespace orrery::executor {

namespace {

/// A small GPT on a host with a core for each of two ranks.
models::Question small_question() {
  Json cluster = hardware::expand_cluster(Document::from("cpu-host x 1", "cluster").root());
  cluster["node"]["gpus"] = 2;
  const Document document = Document::from(cluster, "cluster");
  models::Plan plan = plan_for(small_gpt(), small_plan());
  plan.data = 2;
  return {.model = small_gpt(),
          .plan = plan,
          .cluster = hardware::read_cluster(document.root()),
          .software = cpu_software(),
          .assumptions = {}};
}

struct Reported {
  std::vector<double> losses{};
  std::vector<std::string> notes{};
  std::optional<Json> done{};
  std::optional<Trace> trace{};
  std::vector<SessionEnd> ends{};
  std::mutex lock{};
};

SessionEvents events_into(Reported& reported) {
  SessionEvents events;
  events.note = [&](const std::string& line) {
    const std::lock_guard guard{reported.lock};
    reported.notes.push_back(line);
  };
  events.step = [&](const MeasuredStep& step) { reported.losses.push_back(step.loss); };
  events.done = [&](const FinishedRun& run) {
    reported.done = to_json(run);
    reported.trace = run.execution.trace;
  };
  events.failed = [&](const SessionEnd& end) {
    const std::lock_guard guard{reported.lock};
    reported.ends.push_back(end);
  };
  return events;
}

Exit run_two(const SessionOptions& options, const SessionEvents& events, StopRequests& requests) {
  const models::Question question = small_question();
  return run_threads({question, options, events, requests}, 2);
}

}  // namespace

TEST_CASE("A run of two threads reports every step and, once, what it measured") {
  Reported reported;
  StopRequests requests;
  CHECK(run_two({.steps = 3}, events_into(reported), requests) == Exit::done);
  REQUIRE(reported.done);
  CHECK(reported.done->at("ranks") == 2);
  CHECK(reported.done->at("steps").size() == 3);
  CHECK(reported.done->at("steps").at(2).at("loss") == reported.losses.at(2));
  CHECK(reported.ends.empty());
  CHECK_FALSE(reported.trace);
}

TEST_CASE("A recorded step holds both ranks and is none of the measured ones") {
  Reported reported;
  StopRequests requests;
  const SessionOptions options{.steps = 1, .detail = TraceDetail::instructions};
  CHECK(run_two(options, events_into(reported), requests) == Exit::done);
  REQUIRE(reported.trace);
  CHECK(reported.trace->processes().size() == 2);
  CHECK(reported.done->at("recorded_step") == 2);
}

TEST_CASE("Steps are counted from one, and a log has each step once though a run was killed") {
  const Folder folder;
  const std::string log = folder.path + "/log";
  Reported reported;
  StopRequests requests;
  const auto steps_in = [&] {
    std::vector<int> steps;
    std::ifstream file{log};
    for (std::string line; std::getline(file, line);) {
      const Json json = Json::parse(line, nullptr, false);
      steps.push_back(json.is_object() ? json.value("step", 0) : -1);
    }
    return steps;
  };
  SessionOptions options{.steps = 2, .checkpoint = folder.path + "/run"};
  options.log = log;
  CHECK(run_two(options, events_into(reported), requests) == Exit::done);
  CHECK(reported.done->at("steps").at(0).at("step") == 1);
  CHECK(steps_in() == std::vector<int>{1, 2});
  // A run that took three steps more and was killed within the next line, before a checkpoint.
  std::ofstream{log, std::ios::app} << R"({"step":3,"loss":9.5})"
                                    << "\n"
                                    << R"({"step":4,"loss":9.5})"
                                    << "\n"
                                    << R"({"step":5,"lo)";
  options.steps = 4;
  CHECK(run_two(options, events_into(reported), requests) == Exit::done);
  CHECK(reported.done->at("resumed_from_step") == 2);
  CHECK(steps_in() == std::vector<int>{1, 2, 3, 4});
  // Another run that begins anew appends to the same file.
  options.checkpoint = folder.path + "/other";
  options.steps = 1;
  CHECK(run_two(options, events_into(reported), requests) == Exit::done);
  CHECK(steps_in() == std::vector<int>{1, 2, 3, 4, 1});
}

TEST_CASE("A request to end is answered after the step where the run writes checkpoints") {
  const Folder folder;
  Reported reported;
  StopRequests requests;
  SessionEvents events = events_into(reported);
  events.step = [&](const MeasuredStep& step) {
    reported.losses.push_back(step.loss);
    if (step.index == 1) requests.ask_to_end(SIGINT);
  };
  const SessionOptions options{.steps = 1000, .checkpoint = folder.path + "/run"};
  CHECK(run_two(options, events, requests) == Exit::interrupted);
  REQUIRE_FALSE(reported.ends.empty());
  // Both ranks must have seen the request: the second or the third step is the last.
  const std::size_t steps = reported.losses.size();
  CHECK(steps >= 2);
  CHECK(reported.ends.front().verdict.why ==
        "a checkpoint was written after " + std::to_string(steps) + " steps");
  CHECK_FALSE(reported.done);
}

TEST_CASE("A run that finds its folder taken has written nothing there") {
  const Folder folder;
  const FolderLock first{folder.path};
  const int watch = ::inotify_init1(IN_NONBLOCK);
  REQUIRE(::inotify_add_watch(watch, folder.path.c_str(), IN_CREATE | IN_MOVED_TO) >= 0);
  Reported reported;
  StopRequests requests;
  const SessionOptions options{.steps = 1, .checkpoint = folder.path};
  CHECK(run_two(options, events_into(reported), requests) == Exit::wrong_input);
  alignas(inotify_event) char events[4096];
  const ssize_t seen = ::read(watch, events, sizeof events);  // none: EAGAIN
  CHECK(seen == -1);
  ::close(watch);
}

TEST_CASE("A caller that waits is called while the ranks run") {
  StopRequests requests;
  SessionEvents events;
  int calls = 0;
  events.waiting = [&] {
    if (++calls == 3) requests.ask_to_end(SIGINT);
  };
  CHECK(run_two({.steps = 100'000'000}, events, requests) == Exit::interrupted);
  CHECK(calls >= 3);
}

TEST_CASE("What the caller throws at the end of a run ends it on all ranks") {
  Reported reported;
  StopRequests requests;
  SessionEvents events = events_into(reported);
  events.done = [](const FinishedRun&) { throw std::runtime_error{"no"}; };
  CHECK(run_two({.steps = 1}, events, requests) == Exit::our_fault);
  REQUIRE(reported.ends.size() == 2);
  for (const SessionEnd& each : reported.ends) {
    CHECK(each.verdict.why == "no");
    CHECK(each.reports == (each.rank == 0));
  }
}

TEST_CASE("Words become options, and the first that cannot be is named by its flag") {
  SessionOptions options;
  complete(options, {.fabric = "threads", .resume = "changed", .trace = true});
  CHECK(options.fabric == FabricKind::threads);
  CHECK(options.resume_changed);
  CHECK(options.detail == TraceDetail::instructions);
  CHECK_THROWS_WITH(complete(options, {.fabric = "pigeons"}),
                    "--fabric: expected tcp, mpi, "
                    "threads or nccl, found 'pigeons'");
  CHECK_THROWS_WITH(complete(options, {.checkpoint_every = "5"}),
                    "--checkpoint-every: needs --checkpoint DIR");
  options.steps = 0;
  CHECK_THROWS_WITH(complete(options, {}), "--steps: expected 1 or more, found 0");
}

}  // namespace orrery::executor
