// One step of two synthetic pipelines, by each evaluation. Durations are of the order of an A100's;
// a layer is 14 operations forward and 24 backward, four of each the tensor group's.
//   trillion   64 stages of 2 layers, 512 micro-batches: 2.5 million operations
//   175b       16 stages of 6 chunks of a layer, 96 micro-batches: 0.35 million
// Targets: maps 1 / 0.3 ms, operations 15 / 3 ms, events 500 / 60 ms.

#include <benchmark/benchmark.h>

#include <string>
#include <utility>

#include "tests/models/evaluation/operations.hpp"
#include "tests/models/evaluation/programs.hpp"

namespace orrery::models {
namespace {

struct Pipeline {
  std::string schedule;
  PipelineShape shape;
  std::int64_t layers = 1;  // of a chunk
};

Pipeline trillion() {
  return {"1f1b", {64, 1, 512}, 2};
}
Pipeline gpt_175b() {
  return {"interleaved-1f1b", {16, 6, 96}, 1};
}

/// Kernels one after the other; every `period`-th is a collective between two of them.
void fill(Case& made, std::uint32_t id, int operations, int period) {
  Block block = block_of("layer");
  std::vector<PricedOperation> prices;
  for (int i = 0; i < operations; ++i) {
    const bool collective = i % period == period - 1;
    const bool after_collective = i % period == 0 && i > 0;
    std::vector<OpId> after;
    if (i == 0) after.push_back(block_input);
    if (collective || after_collective) after.push_back(static_cast<OpId>(i - 1));
    block.operations.push_back(operation_on(collective ? Lane::tensor : Lane::compute,
                                            std::move(after), i == operations - 1));
    prices.push_back({5_us, collective ? 200_us : (100 + 37 * (i % 5)) * 1_us});
  }
  made.program->blocks[id] = std::move(block);
  made.priced.blocks[id] = std::move(prices);
}

Case layered(const Pipeline& pipeline) {
  Case made = simple_pipeline(pipeline.schedule, pipeline.shape, Time{}, Time{});
  fill(made, 0, 14, 3);
  fill(made, 1, 24, 5);
  for (Phase& phase : made.program->phases) phase.invocations[0].count = pipeline.layers;
  made.priced.channels.assign(made.program->channels.size(), 150_us);
  made.priced.transfer_launch = 5_us;
  std::vector<std::uint32_t> everyone;
  for (std::uint32_t c = 0; c < made.program->classes.size(); ++c) everyone.push_back(c);
  append_joint(made, Opcode::norm, {.name = "norm", .classes = everyone, .host_waits = true}, 10_us,
               40_us);
  return made;
}

std::int64_t operations_of(const Case& made) {
  std::int64_t sum = 0;
  for (const RankClass& ranks : made.program->classes) {
    for (const Instruction& each : ranks.instructions) {
      if (each.op != Opcode::forward && each.op != Opcode::backward) continue;
      for (const Invocation& run : made.program->phases[each.target].invocations) {
        sum += run.count *
               static_cast<std::int64_t>(made.program->blocks[run.block].operations.size());
      }
    }
  }
  return sum;
}

void evaluate(benchmark::State& state, StepTimes (*evaluation)(const PricedProgram&),
              const Pipeline& pipeline) {
  const Case made = layered(pipeline);
  const std::string wrong = difference(evaluation(made.priced), evaluate_operations(made.priced));
  if (!wrong.empty()) return state.SkipWithError(wrong.c_str());
  for (auto each : state) benchmark::DoNotOptimize(evaluation(made.priced));
  const std::int64_t operations = operations_of(made);
  state.counters["operations"] = static_cast<double>(operations);
  state.counters["per_operation"] =
      benchmark::Counter(static_cast<double>(operations * state.iterations()),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

BENCHMARK_CAPTURE(evaluate, maps_trillion, evaluate_maps, trillion())
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(evaluate, maps_175b, evaluate_maps, gpt_175b())->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(evaluate, operations_trillion, evaluate_operations, trillion())
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(evaluate, operations_175b, evaluate_operations, gpt_175b())
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(evaluate, events_trillion, evaluate_events, trillion())
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(evaluate, events_175b, evaluate_events, gpt_175b())
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::models
