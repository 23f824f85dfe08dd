// Plans of a search per second, on all threads and on one: GPT-3 175B on 1,024 A100. Of 4,686 plans
// 1,971 are too large by their sizes alone; `per_lowered` is what one of the others takes (lower,
// bound, evaluate), 0.5 ms at most where the heap (exponential, 10,000 pending) takes 67 ns per
// event.

#include <benchmark/benchmark.h>

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

void search(benchmark::State& state) {
  const PlanQuery query = gpt3();
  const Workers workers{static_cast<unsigned>(state.range(0)), {}};
  PlanAnswer answer;
  for (auto each : state) answer = search_plans(query, objective_named("time"), workers);
  if (answer.fitting.empty()) return state.SkipWithError("no plan fits");
  count(state, answer.considered);
  const std::int64_t lowered = answer.considered - answer.too_large_by_sizes - answer.passed_over;
  state.counters["per_lowered"] =
      benchmark::Counter(static_cast<double>(lowered * state.iterations()),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void enumerate(benchmark::State& state) {
  const PlanQuery query = gpt3();
  std::size_t plans = 0;
  for (auto each : state) plans = enumerate_plans(query).plans.size();
  count(state, static_cast<std::int64_t>(plans));
}

BENCHMARK(search)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(enumerate)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::scenarios
