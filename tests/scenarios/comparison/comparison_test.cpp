#include "scenarios/comparison/comparison.hpp"

#include <catch2/catch.hpp>

#include "scenarios/report/result.hpp"
#include "scenarios/scenario/scenario.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

/// Records of one rank, one after the other unless a start is given.
class OneRank {
 public:
  OneRank(Trace& trace, int rank, int stage)
      : trace_{trace},
        rank_{rank},
        process_{"rank " + std::to_string(rank) + " (stage " + std::to_string(stage) + ")"} {}

  OneRank& add(const std::string& path, const std::string& kind, Time start, Time duration,
               const std::string& queue = "compute") {
    trace_.add({.track = trace_.add_track(process_, queue),
                .start = start,
                .duration = duration,
                .name = kind,
                .id = std::to_string(rank_) + "/" + path,
                .kind = kind});
    return *this;
  }

 private:
  Trace& trace_;
  int rank_;
  std::string process_;
};

const ClassComparison& class_named(const Comparison& comparison, const std::string& name) {
  for (const ClassComparison& each : comparison.classes) {
    if (each.name == name) return each;
  }
  FAIL("no class " << name);
  return comparison.classes.front();
}

}  // namespace

TEST_CASE("Two traces of a prediction last as long as the step that simulate prints") {
  // nemo's host takes 20 ms before the first instruction.
  const Json json = Json::parse(R"({"model": "gpt2", "cluster": "dgx-a100-80gb",
      "software": "nemo", "plan": {"tensor": 2, "pipeline": 2, "data": 2, "micro_batch": 1,
      "global_batch": 8, "seq_len": 1024, "zero": 1}})");
  const models::Prediction prediction =
      models::predict(Scenario::parse(json, "with a host").question());
  REQUIRE(prediction.priced.step_launch == 20_ms);
  for (const TraceDetail detail : {TraceDetail::instructions, TraceDetail::operations}) {
    const Trace trace = trace_of(prediction, detail);
    const Comparison same = compare(trace, trace, "itself");
    CHECK(same.predicted == prediction.step);
    CHECK(same.unmatched() == 0);
    Time parts{};
    for (const CriticalPath::Share& each : same.predicted_path.parts) parts += each.time;
    CHECK(parts == prediction.step);
  }
}

TEST_CASE("A prediction compared with itself differs nowhere and leaves nothing unmatched") {
  const Json json = Json::parse(R"({"model": "gpt2", "cluster": "dgx-a100-80gb",
      "software": "megatron-lm", "plan": {"tensor": 2, "pipeline": 2, "data": 2, "micro_batch": 1,
      "global_batch": 8, "seq_len": 1024, "zero": 1}})");
  const models::Prediction prediction =
      models::predict(Scenario::parse(json, "every queue").question());
  for (const TraceDetail detail : {TraceDetail::instructions, TraceDetail::operations}) {
    const Trace trace = trace_of(prediction, detail);
    const Comparison same = compare(trace, trace, "itself");
    CHECK(same.unmatched() == 0);
    CHECK(same.predicted == same.measured);
    CHECK_FALSE(same.paths_part_at);
    CHECK(same.ranks == 2);
    for (const ClassComparison& each : same.classes) CHECK(each.count > 0);
  }
}

TEST_CASE("A measured rank that was not predicted is joined to the one of its stage") {
  Trace predicted, measured;
  OneRank{predicted, 0, 0}.add("0/layer.forward.0/qkv", "gemm", 0_us, 10_us);
  OneRank{measured, 0, 0}.add("0/layer.forward.0/qkv", "gemm", 0_us, 12_us);
  OneRank{measured, 1, 0}.add("0/layer.forward.0/qkv", "gemm", 0_us, 8_us);
  const Comparison joined = compare(predicted, measured, "measured");
  const ClassComparison& gemm = class_named(joined, "gemm");
  CHECK(gemm.count == 2);
  CHECK(gemm.predicted == 20_us);
  CHECK(gemm.measured == 20_us);
  CHECK(joined.unmatched() == 0);
  REQUIRE(joined.largest.size() == 1);
  CHECK(joined.largest[0].block == "layer.forward");
  CHECK(joined.largest[0].name == "qkv");
}

TEST_CASE("What only one of the traces has is named by its id") {
  Trace predicted, measured;
  OneRank{predicted, 0, 0}
      .add("0/layer.forward.0/qkv", "gemm", 0_us, 10_us)
      .add("0/layer.forward.0/up", "gemm", 10_us, 10_us);
  OneRank{measured, 0, 0}
      .add("0/layer.forward.0/qkv", "gemm", 0_us, 10_us)
      .add("0/layer.forward.1/up", "gemm", 10_us, 10_us);
  const Comparison joined = compare(predicted, measured, "measured");
  CHECK(joined.only_predicted == std::vector<std::string>{"0/0/layer.forward.0/up"});
  CHECK(joined.only_measured == std::vector<std::string>{"0/0/layer.forward.1/up"});
  CHECK(joined.unmatched() == 2);
}

TEST_CASE("Waiting for the slowest rank is no part of a collective") {
  // Rank 1 comes 30 us late: rank 0 is inside the sum for 35 us, of which 5 are the sum.
  Trace predicted, measured;
  OneRank{predicted, 0, 0}.add("0/layer.forward.0/sum", "tp", 0_us, 4_us, "comm:tp");
  OneRank{measured, 0, 0}.add("0/layer.forward.0/sum", "tp", 0_us, 35_us, "comm:tp");
  OneRank{measured, 1, 0}.add("0/layer.forward.0/sum", "tp", 30_us, 5_us, "comm:tp");
  const Comparison joined = compare(predicted, measured, "measured");
  CHECK(class_named(joined, "tp").measured == 10_us);
  CHECK(joined.waiting == 30_us);
}

TEST_CASE("A receive begins no earlier than the send that it meets") {
  // Stage 1 asks at 0, stage 0 sends at 50 us, and it is there at 58 us: 8 us on the way.
  Trace predicted, measured;
  OneRank{predicted, 0, 0}.add("1", "send", 40_us, 0_us, "comm:pp");
  OneRank{predicted, 1, 1}.add("0", "receive", 40_us, 6_us, "comm:pp");
  OneRank{measured, 0, 0}.add("1", "send", 50_us, 2_us, "comm:pp");
  OneRank{measured, 1, 1}.add("0", "receive", 0_us, 58_us, "comm:pp");
  const Comparison joined = compare(predicted, measured, "measured");
  CHECK(class_named(joined, "receive").measured == 8_us);
  CHECK(joined.waiting == 50_us);
  CHECK(joined.unmatched() == 0);
}

TEST_CASE("The critical path crosses to the rank that was waited for, and gaps are idle") {
  // Rank 0: a until 10, then from 32 on b. Rank 1: c until 30. The chain is c, 2 idle, b.
  Trace trace;
  OneRank{trace, 0, 0}.add("0", "a", 0_us, 10_us).add("1", "b", 32_us, 8_us);
  OneRank{trace, 1, 0}.add("0", "c", 0_us, 30_us);
  const CriticalPath path = critical_path(trace);
  REQUIRE(path.parts.size() == 3);
  CHECK(path.parts[0].kind == "c");
  CHECK(path.parts[0].time == 30_us);
  CHECK(path.parts[1].kind == "b");
  CHECK(path.parts[2].kind == "idle");
  CHECK(path.parts[2].time == 2_us);
}

TEST_CASE("Traces of different detail are refused in one sentence") {
  Trace predicted, measured;
  OneRank{predicted, 0, 0}.add("0", "forward", 0_us, 10_us);
  OneRank{measured, 0, 0}.add("0/layer.forward.0/qkv", "gemm", 0_us, 10_us);
  CHECK_THROWS_WITH(compare(predicted, measured, "run.json"),
                    "run.json: one trace is by instructions and the other by operations; accepted: "
                    "two of the same --trace-detail");
}

}  // namespace orrery::scenarios
