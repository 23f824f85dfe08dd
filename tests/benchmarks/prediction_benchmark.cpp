// From a question to a whole prediction, and one plan of a search. The targets hold where the heap
// (exponential, 10,000 pending) takes 67 ns per event:
//   lower_and_simulate   gpt-1t-512-a100 4 ms, gpt3-175b-1024-a100 1.5 ms, deepseek-v3-2048-h800
//                        10 ms, without the check
//   whole_prediction     gpt-1t-512-a100 5 ms, gpt3-175b-1024-a100 2 ms, with the check
//   long_plan_of_a_search  gpt3-175b-1024-a100, one of the longest lists of its search, 0.5 ms; the
//                        mean plan is in search_benchmark.cpp

#include <benchmark/benchmark.h>

#include <string>

#include "scenarios/command/terminal/heap.hpp"
#include "scenarios/scenario/scenario.hpp"
#include "tests/benchmarks/hold.hpp"

namespace orrery::scenarios {
namespace {

const bool prepared = (prepare_heap(), true);  // as the command does

models::Question question_of(const std::string& name) {
  return Scenario::load(name).question();
}

/// limit  ms, where the heap takes 67 ns
void lower_and_simulate(benchmark::State& state, double limit, const std::string& name) {
  const models::Question question = question_of(name);
  double check = 0;
  for (auto each : state) {
    const models::Prediction found = models::predict(question);
    state.SetIterationTime(found.lower_seconds + found.simulate_seconds);
    check += found.check_seconds;
  }
  state.counters["limit_ms"] = limit;
  state.counters["check"] = benchmark::Counter(check, benchmark::Counter::kAvgIterations);
}

/// All of `predict`, which checks the Program, too.
void whole_prediction(benchmark::State& state, double limit, const std::string& name) {
  const models::Question question = question_of(name);
  for (auto each : state) benchmark::DoNotOptimize(models::predict(question));
  state.counters["limit_ms"] = limit;
}

void long_plan_of_a_search(benchmark::State& state) {
  const models::Question question = question_of("gpt3-175b-1024-a100");
  for (auto each : state) benchmark::DoNotOptimize(models::estimate(question));
  state.counters["limit_ms"] = 0.5;
}

BENCHMARK_CAPTURE(four_ary_heap, exponential, Spread::exponential)->Arg(10'000)->UseRealTime();
BENCHMARK_CAPTURE(lower_and_simulate, trillion, 4, "gpt-1t-512-a100")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(lower_and_simulate, 175b, 1.5, "gpt3-175b-1024-a100")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(lower_and_simulate, experts, 10, "deepseek-v3-2048-h800")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_prediction, trillion, 5, "gpt-1t-512-a100")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_prediction, 175b, 2, "gpt3-175b-1024-a100")->Unit(benchmark::kMillisecond);
BENCHMARK(long_plan_of_a_search)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::scenarios
