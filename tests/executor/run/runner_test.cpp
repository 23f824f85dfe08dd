// What a run says of itself: trace, memory, progress, state, refusals.

#include "executor/run/runner.hpp"

#include <catch2/catch.hpp>
#include <future>
#include <mutex>
#include <set>

#include "executor/device/cpu/cpu_device.hpp"
#include "executor/errors.hpp"
#include "executor/fabric/threads/thread_fabric.hpp"
#include "executor/run/weights/weights.hpp"
#include "models/model/counts.hpp"
#include "models/program/memory.hpp"
#include "tests/executor/world.hpp"

namespace orrery::executor {
namespace {

using models::Plan;

std::set<std::string> ids_of(const Trace& trace) {
  std::set<std::string> ids;
  for (const TraceRecord& each : trace.records()) {
    CHECK(each.duration >= Time{});
    ids.insert(each.id);
  }
  CHECK(ids.size() == trace.records().size());
  return ids;
}

TEST_CASE("A trace has one record for each operation, by the simulator's path") {
  Plan plan = small_plan(2);
  plan.tensor = 2;
  const Outcome out = run({.model = small_gpt(), .plan = plan});
  const std::set<std::string> ids = ids_of(out.traces[1]);
  for (const char* id :
       {"1/0/embedding.forward/embedding", "1/0/embedding.forward/embedding.sum",
        "1/0/layer.forward.0/qkv", "1/0/layer.forward.1/down.sum",
        "1/0/head.forward/loss.statistics.gather", "1/1/head.backward/head.wgrad",
        "1/1/layer.backward.1/up.wgrad", "1/3/embedding.backward/embedding.backward",
        "1/4/gradient_norm/squared_norm", "1/5", "1/6/adam/adam"}) {
    INFO(id);
    CHECK(ids.count(id) == 1);
  }
  const Trace& trace = out.traces[1];
  CHECK(trace.processes() == std::vector<std::string>{"rank 1 (stage 0)"});
  REQUIRE(trace.tracks().size() == 8);
  CHECK(trace.tracks()[2].name == "comm:tp");
  CHECK(trace.notes().at("peak_memory_bytes") == out.memory[1].peak.count());
}

TEST_CASE("By instructions a trace has one record for each of the rank's list") {
  Plan plan = small_plan(4);
  plan.pipeline = 2;
  Job job{.model = small_gpt(), .plan = plan};
  job.settings.trace = TraceDetail::instructions;
  const Outcome out = run(job);
  const models::Program program = lowered(job.model, plan);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(ids_of(out.traces[rank]).size() == program.classes[rank].instructions.size());
  }
  job.settings.trace = TraceDetail::none;
  CHECK(run(job).traces[0].records().empty());
}

TEST_CASE("Measured memory is what the Program promises, up to alignment") {
  // A row of 64 KiB makes the rounding of each operand to 64 bytes small next to it.
  const models::Model model = changed(small_llama(4), [](auto& draft) {
    draft.hidden = 64;
    draft.mlp.width = 96;
    draft.attention.head_dim = 8;
  });
  for (const auto recompute : {models::Recompute::none, models::Recompute::full}) {
    Plan plan = small_plan(8);
    plan.pipeline = 2;
    plan.recompute.kind = recompute;
    const models::Program program = lowered(model, plan);
    const Outcome out = run({.model = model, .plan = plan});
    for (std::uint32_t stage = 0; stage < 2; ++stage) {
      const models::MemoryPeak promised = models::memory_peaks(program)[stage];
      const MeasuredMemory& measured = out.memory[stage];
      using models::BufferKind;
      for (const BufferKind kind :
           {BufferKind::parameter, BufferKind::gradient, BufferKind::optimizer}) {
        const auto at = static_cast<std::size_t>(kind);
        CHECK(measured.by_kind[at] == promised.by_kind[at]);
      }
      const auto activation = static_cast<std::size_t>(BufferKind::activation);
      CHECK(measured.by_kind[activation] >= promised.by_kind[activation]);
      CHECK(ratio(measured.by_kind[activation], promised.by_kind[activation]) < 1.01);
      CHECK(ratio(measured.peak, models::total(promised.by_kind)) == Approx(1.0).margin(0.05));
      CHECK(measured.allocated >= measured.peak);
      CHECK(measured.resident > measured.peak);
    }
  }
}

/// Three steps on one rank, or one as the plan cuts it and two on one.
void check_goes_on(const models::Model& model, const Plan& cut) {
  const Plan whole = small_plan(4);
  const Arithmetic ring = Arithmetic::ring;
  const Outcome through = run({.model = model, .plan = whole, .arithmetic = ring, .steps = 3});
  const Outcome begun = run({.model = model, .plan = cut, .arithmetic = ring, .steps = 1});

  const models::Program program = lowered(model, whole);
  CpuDevice device{ring};
  ThreadWorld world{1};
  const auto fabric = world.fabric(0);
  RunSettings settings;
  settings.arithmetic = ring;
  settings.seed = 99;  // other parameters, which are overwritten
  const auto tokens = synthetic_tokens(1, model.embedding.vocab);
  settings.tokens = tokens.get();
  Runner runner{program, cpu_software(), device, *fabric, settings};
  go_on_from(begun, 1, runner);
  CHECK(runner.step(1).ring_loss == through.steps[1].ring_loss);
  CHECK(runner.step(2).ring_loss == through.steps[2].ring_loss);
}

TEST_CASE("State written by one cut and read by another goes on as if nothing had happened") {
  Plan cut = small_plan(4);
  SECTION("all kinds of ranks, ZeRO-1") {
    cut.tensor = cut.data = cut.pipeline = 2;
    cut.sharding.zero = models::Zero::one;
  }
  SECTION("stages of ZeRO-3") {
    cut.data = cut.pipeline = 2;
    cut.sharding.zero = models::Zero::three;
  }
  SECTION("copies of shards") {
    cut.data = 4;
    cut.sharding.ranks = 2;
    cut.sharding.zero = models::Zero::three;
  }
  check_goes_on(small_gpt(), cut);
}

TEST_CASE("Experts written by one cut and read by another go on as if nothing had happened") {
  Plan cut = small_plan(4);
  cut.data = 4;
  cut.experts.ranks = 2;
  cut.sharding.zero = models::Zero::one;
  SECTION("replicas of experts, stages") {
    cut.pipeline = 2;
  }
  SECTION("experts over tensor ranks") {
    cut.data = cut.tensor = 2;
    cut.sequence_parallel = true;
    cut.experts.tensor = 1;
    cut.experts.ranks = 4;
  }
  check_goes_on(with_experts(small_llama()), cut);
}

class CountsMarks final : public CpuDevice {
 public:
  Mark mark(models::Lane queue) override {
    ++marks;
    return CpuDevice::mark(queue);
  }
  int marks = 0;
};

TEST_CASE("Steps that are measured carry two marks, recorded ones two for each operation as well") {
  const models::Program program = lowered(small_gpt(), small_plan());
  CountsMarks device;
  ThreadWorld world{1};
  const auto fabric = world.fabric(0);
  RunSettings settings;
  settings.trace = TraceDetail::none;
  Runner runner{program, cpu_software(), device, *fabric, settings};
  const auto marks_of = [&](std::int64_t step) {
    const int before = device.marks;
    runner.step(step);
    return device.marks - before;
  };
  CHECK(marks_of(0) == 2);
  CHECK(runner.trace().records().empty());
  runner.record(TraceDetail::operations);
  const int recorded = marks_of(1);
  const std::size_t records = runner.trace().records().size();
  CHECK(records > 100);
  CHECK(recorded >= 2 + static_cast<int>(records));
  runner.record(TraceDetail::none);
  CHECK(marks_of(2) == 2);
}

TEST_CASE("Each element of the model's state has one writer") {
  models::Model model = small_gpt();
  Plan plan = small_plan(4);
  plan.tensor = plan.data = plan.pipeline = 2;
  for (const auto& [zero, shards] : {std::pair{models::Zero::none, 0},
                                     {models::Zero::one, 0},
                                     {models::Zero::three, 0},
                                     {models::Zero::three, 2}}) {
    plan.sharding.zero = zero;
    plan.sharding.ranks = shards;
    plan.data = shards > 0 ? 4 : 2;
    plan.tensor = shards > 0 ? 1 : 2;
    const models::Program program = lowered(model, plan);
    ThreadWorld world{8};
    std::map<std::string, std::vector<int>> written;
    std::mutex lock;
    const auto count = [&](int rank) {
      CpuDevice device;
      const auto fabric = world.fabric(rank);
      const Runner runner{program, cpu_software(), device, *fabric, {}};
      const std::lock_guard guard{lock};
      for (const StateTensor& each : runner.layout().tensors()) {
        written[each.name].resize(static_cast<std::size_t>(each.elements()));
      }
      for (const StateRun& run : runner.layout().runs()) {
        auto& counts = written[runner.layout().tensors()[run.tensor].name];
        for (std::int64_t i = 0; run.writer && i < run.count; ++i) {
          ++counts[static_cast<std::size_t>(run.offset + i)];
        }
      }
    };
    std::vector<std::future<void>> ranks;
    for (int rank = 0; rank < 8; ++rank) {
      ranks.push_back(std::async(std::launch::async, count, rank));
    }
    for (std::future<void>& each : ranks) each.get();
    std::size_t elements = 0;
    for (const auto& [name, counts] : written) {
      INFO(name);
      elements += counts.size();
      CHECK(std::all_of(counts.begin(), counts.end(), [](int n) { return n == 1; }));
    }
    CHECK(elements == static_cast<std::size_t>(models::count_parameters(model)));
  }
}

std::string refusal_of(const models::Model& model, const Plan& plan,
                       const models::Software& software) {
  const models::Program program = models::Program{lowered(model, plan)};
  CpuDevice device;
  ThreadWorld world{static_cast<int>(plan.gpus())};
  const auto fabric = world.fabric(0);
  try {
    Runner runner{program, software, device, *fabric, {}};
  } catch (const RunFailure& failure) {
    CHECK(failure.code() == Exit::invalid_program);
    return failure.what();
  }
  return {};
}

TEST_CASE("What cannot be executed is refused by name before the first step") {
  const models::Software software = cpu_software();
  models::Model model = small_llama();
  Plan plan = small_plan();
  plan.tensor = 8;
  CHECK(refusal_of(model, plan, software) ==
        "cannot execute more tensor ranks (8) than key-value heads (4)");
  plan.tensor = 1;
  model.embedding.positions = models::Positions::alibi;
  CHECK(refusal_of(model, plan, software) == "cannot execute positions 'alibi'");
  model = small_llama();
  models::Software dropping = software;
  dropping.kernels.dropout = true;
  CHECK(refusal_of(model, plan, dropping) == "cannot execute dropout");
  plan.kernels.attention = models::AttentionKernel::flash_2;
  CHECK(refusal_of(model, plan, software) ==
        "cannot execute attention flash-2 (a device computes it with a kernel of its own)");
  plan.kernels.attention = models::AttentionKernel::of_stack;
  plan.rank_order = models::RankOrder::pipeline_first;
  CHECK(refusal_of(model, plan, software) ==
        "cannot execute rank_order (ranks are numbered tp-cp-ep-dp-pp)");
  plan.rank_order = models::RankOrder::data_first;
  plan.kernels.graphs = true;
  CHECK(refusal_of(model, plan, software) == "cannot execute cuda_graphs (this device has none)");
}

TEST_CASE("A rank whose peers do not come says where it is and whom it waits for") {
  Plan plan = small_plan(4);
  plan.pipeline = 2;
  const models::Program program = lowered(small_gpt(), plan);
  CpuDevice device;
  ThreadWorld world{2, std::chrono::milliseconds{50}};
  const auto fabric = world.fabric(1);
  Runner runner{program, cpu_software(), device, *fabric, {}};
  CHECK_THROWS_WITH(runner.step(0), "the other ranks did not come before the deadline");
  const Progress progress = runner.progress();
  CHECK(progress.waits_for == "rank 0");
  CHECK(progress.instruction == 1);
  CHECK(progress.text == "rank 1 is in step 0 at instruction 1 of " +
                             std::to_string(program.classes[1].instructions.size()) +
                             ", forward chunk 1 mb 0, and waits for rank 0");
}

}  // namespace
}  // namespace orrery::executor
