// Plans of a search per second, on all threads and on one: GPT-3 175B on 1,024 A100. Of 4,686 plans
// 1,971 are too large by their sizes alone; lowered_plan is the mean of what the others take
// (lower, bound, evaluate), 0.5 ms at most where the heap (exponential, 10,000 pending) takes 67 ns
// per event.

#include <benchmark/benchmark.h>

#include <chrono>

#include "tests/scenarios/search/queries.hpp"

namespace orrery::scenarios {
namespace {

PlanQuery gpt3() {
  return plan_query("gpt3-175b", "dgx-a100-80gb x 128", 1536, 2048, Breadth::full);
}

void count(benchmark::State& state, std::int64_t plans) {
  state.counters["plans"] = static_cast<double>(plans);
  state.counters["plans_per_second"] = benchmark::Counter(
      static_cast<double>(plans * state.iterations()), benchmark::Counter::kIsRate);
}

PlanAnswer found_by(unsigned threads) {
  return search_plans(gpt3(), objective_named("time"), Workers{threads, {}});
}

void search(benchmark::State& state) {
  PlanAnswer answer;
  for (auto each : state) answer = found_by(static_cast<unsigned>(state.range(0)));
  if (answer.fitting.empty()) return state.SkipWithError("no plan fits");
  count(state, answer.considered);
}

void lowered_plan(benchmark::State& state) {
  for (auto each : state) {
    const auto begin = std::chrono::steady_clock::now();
    const PlanAnswer answer = found_by(1);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const std::int64_t lowered = answer.considered - answer.too_large_by_sizes - answer.passed_over;
    state.SetIterationTime(took.count() / static_cast<double>(lowered));
  }
  state.counters["limit_ms"] = 0.5;
}

void enumerate(benchmark::State& state) {
  const PlanQuery query = gpt3();
  std::size_t plans = 0;
  for (auto each : state) plans = enumerate_plans(query).plans.size();
  count(state, static_cast<std::int64_t>(plans));
}

BENCHMARK(search)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(lowered_plan)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(enumerate)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::scenarios
