// CUDA graphs on queues that are threads: what is captured once is right in every later step, on
// every cut, and is used again.

#include <catch2/catch.hpp>

#include "executor/errors.hpp"
#include "models/program/graph_segments.hpp"
#include "tests/executor/cuts.hpp"
#include "tests/executor/queued_rig.hpp"

namespace orrery::executor {
namespace {

using models::Plan;
using models::Program;

/// Runs of segments in one step of a rank, and their operations.
struct Runs {
  std::int64_t graph_segments = 0, operations = 0;
};
Runs runs_of(const Program& program, std::size_t rank) {
  const auto stage = program.mesh.stage_of(static_cast<std::int64_t>(rank));
  Runs runs;
  for (const models::Instruction& each :
       program.classes[static_cast<std::size_t>(stage)].instructions) {
    const bool phase = each.op == models::Opcode::forward || each.op == models::Opcode::backward ||
                       each.op == models::Opcode::weight_gradient;
    if (!phase) continue;
    for (const models::Invocation& run : program.phases[each.target].invocations) {
      for (const models::GraphSegment& segment : models::graph_segments(program, run.block)) {
        runs.graph_segments += run.count;
        runs.operations += run.count * static_cast<std::int64_t>(segment.end - segment.first);
      }
    }
  }
  return runs;
}

Job with_graphs(const Cut& of, std::uint64_t seed) {
  Job job{.model = of.model, .plan = of.plan, .arithmetic = Arithmetic::ring, .steps = 3};
  job.plan.kernels.graphs = true;
  job.settings.trace = TraceDetail::none;
  job.rig = queued({.arithmetic = Arithmetic::ring, .seed = seed});
  return job;
}

TEST_CASE(
    "With graphs every cut gives the bits of one rank, every kernel in one, and no wait is missing",
    "[heavy]") {
  std::uint64_t seed = 0;
  for (const Cut& each : cuts()) {
    if (each.plan.context > 1) continue;  // refused
    INFO(each.name);
    const Outcome& one = reference(each, Arithmetic::ring);
    const Job job = with_graphs(each, ++seed);
    const Outcome many = run(job);
    check_bits(many, one);
    // Addresses are the same in every step: in the third nothing is left to capture.
    const Program program = lowered(job.model, job.plan);
    for (std::size_t rank = 0; rank < many.graphs.size(); ++rank) {
      const GraphCounts& counts = many.graphs[rank];
      const Runs runs = runs_of(program, rank);
      CHECK(counts.launches == runs.graph_segments);
      CHECK(counts.graphs <= runs.graph_segments);
      CHECK(counts.nodes <= runs.operations);
    }
  }
}

Cut two_micro_batches(const char* schedule) {
  return cut(schedule, small_gpt(1), [&](Plan& p) {
    p.stages.schedule = schedule;
    p.batch.micro = 2;
  });
}

TEST_CASE("Micro-batches that use the same memory share graphs, those next to each other do not") {
  const auto counts = [](const char* schedule, std::int64_t steps) {
    Job job = with_graphs(two_micro_batches(schedule), 1);
    job.steps = steps;
    return run(job).graphs[0];
  };
  // Two micro-batches of a layer and the model's ends, forward and backward: 12 runs. 1F1B ends the
  // first before it begins the second, in the same memory: all but what reads tokens and labels
  // is captured when the second runs in step 1. Those are forward and backward of both ends.
  CHECK(counts("1f1b", 1).graphs == 2);
  CHECK(counts("1f1b", 1).launches == 2);
  CHECK(counts("1f1b", 3).graphs == 2 + 2 * 4);
  CHECK(counts("1f1b", 3).launches == 12);
  // GPipe keeps both.
  CHECK(counts("gpipe", 1).graphs == 0);
  CHECK(counts("gpipe", 2).graphs == 12);
  CHECK(counts("gpipe", 3).graphs == 12);
  CHECK(counts("gpipe", 3).launches == 12);
}

TEST_CASE("A graph that stands for the wrong memory shows in the bits") {
  const Cut two = two_micro_batches("gpipe");
  Job job = with_graphs(two, 1);
  // Captured in the order of the second step: embedding, layer and head of the first micro-batch,
  // then of the second. The planted key takes no notice of the micro-batch.
  const auto ends = [&](std::function<std::uint32_t(std::uint32_t)> mistaken) {
    job.rig = queued({.arithmetic = Arithmetic::ring, .mistaken = std::move(mistaken)});
    return same_bits(run(job).parameters, reference(two, Arithmetic::ring).parameters);
  };
  CHECK(ends([](std::uint32_t id) { return id; }));
  CHECK_FALSE(ends([](std::uint32_t id) { return id == 4 ? 1 : id; }));
  CHECK_FALSE(ends([](std::uint32_t id) { return id == 10 ? 7 : id; }));
}

TEST_CASE("Another scale of the loss is another graph where it is read") {
  Job job{.model = small_gpt(1), .plan = small_plan(), .steps = 6};
  job.plan.formats.precision = models::Precision::fp16;
  job.plan.batch.micro = 4;
  job.settings.loss_scale = 1 << 21;
  const Outcome straight = run(job);
  REQUIRE(straight.steps.back().skipped > 0);  // halved at least once,
  REQUIRE(straight.steps.back().skipped < 5);  // and then right for two steps or more
  job.plan.kernels.graphs = true;
  job.rig = queued({});
  const Outcome graphs = run(job);
  CHECK(same_bits(graphs.parameters, straight.parameters));
  CHECK(graphs.steps.back().skipped == straight.steps.back().skipped);
  // A layer, the embedding and the head, forward and backward: each once, backward of the head
  // with the last scale, as no other has come twice.
  CHECK(graphs.graphs[0].graphs == 6);
}

TEST_CASE("A capture that fails ends the run and names the block") {
  Job job = with_graphs(two_micro_batches("1f1b"), 1);
  job.rig = queued({.arithmetic = Arithmetic::ring, .uncapturable = "up"});
  CHECK_THROWS_WITH(run(job), "capturing 'layer.forward' as a CUDA graph: 'up' cannot be captured");
}

TEST_CASE("Kernels of a graph have no times of their own: instructions are recorded") {
  Job job{.model = small_gpt(), .plan = small_plan()};
  job.settings.trace = TraceDetail::instructions;
  job.rig = queued({});
  const std::size_t instructions = run(job).traces[0].records().size();
  job.settings.trace = TraceDetail::operations;
  CHECK(run(job).traces[0].records().size() > instructions);
  job.plan.kernels.graphs = true;
  CHECK(run(job).traces[0].records().size() == instructions);
}

}  // namespace
}  // namespace orrery::executor
