// Variants of a sweep, as `orrery sweep` answers and writes them, on one thread. The targets hold
// where the heap (exponential, 10,000 pending) takes 67 ns per event:
//   small   10 plans of llama3-8b-8-h100, each at 1,000 rates: 1.2 s for 10,000 variants, a million
//           in 60 s on two cores
//   large   16 plans of a 70B on 256 H100, each at 64 rates: 0.6 s for 1,024 variants, 10,000 in 6
//   s

#include <benchmark/benchmark.h>

#include <fmt/format.h>

#include <string>

#include "scenarios/whatif/sweep.hpp"

namespace orrery::scenarios {
namespace {

ValueList rates(const std::string& pointer, int first, int count, const std::string& unit) {
  ValueList list{pointer, {}};
  for (int i = 0; i < count; ++i) list.values.emplace_back(fmt::format("{} {}", first + i, unit));
  return list;
}

void answer_all(benchmark::State& state, const SweepQuestions& questions, double limit) {
  std::size_t bytes = 0;
  for (auto each : state) {
    SweepAnswers answers{questions};
    sweep_lines(answers, questions.grid, 0, questions.grid.variants(),
                {.threads = 1, .progress = {}},
                [&](std::string_view lines, std::uint64_t) { bytes += lines.size(); });
  }
  benchmark::DoNotOptimize(bytes);
  state.counters["limit_ms"] = limit;
  state.counters["per_variant"] = benchmark::Counter(
      static_cast<double>(questions.grid.variants()),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void sweep_small(benchmark::State& state) {
  answer_all(state,
             sweep_questions(Scenario::load("llama3-8b-8-h100"),
                             {{"/plan/micro_batch", {1, 2, 4, 8, 16}},
                              {"/plan/recompute", {"none", "full"}},
                              rates("/cluster/fabric/bandwidth", 200, 10, "Gb/s"),
                              rates("/cluster/node/gpu/memory_bandwidth", 3000, 100, "GB/s")},
                             {}),
             1200);
}

void sweep_large(benchmark::State& state) {
  const Scenario base = Scenario::load("llama3-70b-64-h100")
                            .replace({{"/cluster/nodes", 32}, {"/plan/data", nullptr}});
  answer_all(state,
             sweep_questions(base,
                             {{"/plan/tensor", {4, 8}},
                              {"/plan/pipeline", {4, 8}},
                              {"/plan/micro_batch", {1, 2}},
                              {"/plan/zero", {0, 1}},
                              rates("/cluster/fabric/bandwidth", 200, 64, "Gb/s")},
                             {}),
             600);
}

BENCHMARK(sweep_small)->MeasureProcessCPUTime()->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(sweep_large)->MeasureProcessCPUTime()->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::scenarios
