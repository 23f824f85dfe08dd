#include <map>

#include "models/program/program.hpp"
#include "scenarios/report/result.hpp"
#include "tests/models/ledger.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

/// Two stages, tensor and data parallel: every kind of traffic.
models::Question every_queue() {
  const Json json = Json::parse(R"({"model": "gpt2", "cluster": "dgx-a100-80gb",
      "software": "megatron-lm", "plan": {"tensor": 2, "pipeline": 2, "data": 2, "micro_batch": 1,
      "global_batch": 8, "seq_len": 1024, "zero": 1}})");
  return Scenario::parse(json, "every queue").question();
}

/// Complete events of a written trace by process and thread.
struct Written {
  std::map<int, std::string> processes;
  std::map<std::pair<int, int>, std::string> threads;
  std::vector<Json> events;
};

Written written(const models::Prediction& prediction, TraceDetail detail) {
  const Scratch scratch;
  write_trace(trace_of(prediction, detail), scratch.path("trace.json"));
  const Json json = parsed(scratch.read("trace.json"));
  Written trace;
  for (const Json& event : json.at("traceEvents")) {
    if (event["ph"] == "X") trace.events.push_back(event);
    if (event["name"] == "process_name") {
      trace.processes[event["pid"]] = event["args"]["name"].get<std::string>();
    }
    if (event["name"] == "thread_name") {
      trace.threads[{event["pid"], event["tid"]}] = event["args"]["name"].get<std::string>();
    }
  }
  return trace;
}

}  // namespace

TEST_CASE("A trace of operations charges exactly what the Program's ledger counts") {
  const models::Prediction prediction = models::predict(every_queue());
  const Written trace = written(prediction, TraceDetail::operations);
  REQUIRE(trace.processes.size() == 2);
  std::uint32_t rank_class = 0;
  for (const auto& [process, name] : trace.processes) {
    models::Ledger sum;
    for (const Json& event : trace.events) {
      if (event["pid"] != process) continue;
      const std::string thread = trace.threads.at({process, event["tid"].get<int>()});
      const Json& args = event["args"];
      const Bytes bytes{args.value("bytes", std::int64_t{0})};
      sum.flops += Flops{args.value("flops", std::int64_t{0})};
      if (thread == "compute" || thread == "copy") sum.kernel_bytes += bytes;
      if (thread == "comm:tp" || thread == "comm:dp") sum.collective_bytes += bytes;
      if (thread.rfind("comm:pp", 0) == 0) sum.transfer_bytes += bytes;
    }
    INFO(name);
    CHECK(sum.flops.count() > 0);
    CHECK(sum.transfer_bytes.count() > 0);
    CHECK(sum == models::ledger_of(*prediction.program, rank_class++));
  }
}

TEST_CASE("A queue is as long busy in a trace as its transfers take alone") {
  // NeMo shows a quarter of data-parallel and 0.3 of tensor-parallel time; all of it is there.
  const Json json = Json::parse(R"({"model": "gpt2", "cluster": "dgx-a100-80gb",
      "software": "nemo", "plan": {"tensor": 2, "pipeline": 1, "data": 4, "micro_batch": 1,
      "global_batch": 8, "seq_len": 1024, "zero": 1}})");
  const models::Question asked = Scenario::parse(json, "hidden").question();
  models::Question shown = asked;
  shown.software.overlap.data_exposed = shown.software.overlap.tensor_exposed = 1;
  const auto busy = [](const models::Prediction& prediction) {
    std::map<std::string, double> sums;
    const Written trace = written(prediction, TraceDetail::operations);
    for (const Json& event : trace.events) {
      sums[trace.threads.at({event["pid"], event["tid"].get<int>()})] += event["dur"].get<double>();
    }
    return sums;
  };
  auto hidden = busy(models::predict(asked)), whole = busy(models::predict(shown));
  CHECK(hidden["comm:dp"] > 0);
  CHECK(hidden["comm:dp"] == Approx(whole["comm:dp"]).epsilon(1e-9));
  CHECK(hidden["comm:tp"] == Approx(whole["comm:tp"]).epsilon(1e-9));
}

TEST_CASE("A trace ends with the step") {
  const models::Prediction prediction = models::predict(every_queue());
  for (const TraceDetail detail : {TraceDetail::instructions, TraceDetail::operations}) {
    double last = 0;
    for (const Json& event : written(prediction, detail).events) {
      last = std::max(last, event["ts"].get<double>() + event["dur"].get<double>());
    }
    // Microseconds with six decimals: a picosecond is the last digit.
    CHECK(last == Approx(seconds(prediction.step) * 1e6).epsilon(1e-12));
  }
}

TEST_CASE("Work on one queue never overlaps, and no two records share an id") {
  const models::Prediction prediction = models::predict(every_queue());
  const Written trace = written(prediction, TraceDetail::operations);
  std::map<std::pair<int, int>, double> free;
  std::map<std::string, int> ids;
  for (const Json& event : trace.events) {
    double& before = free[{event["pid"], event["tid"]}];
    const double start = event["ts"];
    INFO(event.dump());
    CHECK(start >= before - 1e-6);  // a picosecond
    before = start + event["dur"].get<double>();
    CHECK(++ids[event["args"]["id"].get<std::string>()] == 1);
  }
  CHECK(ids.count("0/0/layer.forward.0/qkv") == 1);
}

TEST_CASE("By default a trace has the schedule's instructions, named by rank and place") {
  const models::Prediction prediction = models::predict(every_queue());
  const Written trace = written(prediction, TraceDetail::instructions);
  std::size_t instructions = 0;
  for (const auto& each : prediction.program->classes) instructions += each.instructions.size();
  // Each on its queue, and its launch; once per process, what the host does before them.
  CHECK(trace.events.size() == 2 * instructions + trace.processes.size());
  std::map<std::string, int> kinds;
  for (const Json& event : trace.events) ++kinds[event["args"]["class"].get<std::string>()];
  // 8 sequences over 2 replicas: 4 micro-batches on each of 2 stages.
  CHECK(kinds["forward"] == 8);
  CHECK(kinds["backward"] == 8);
  CHECK(kinds["receive"] == 8);
}

}  // namespace orrery::scenarios
