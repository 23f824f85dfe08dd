// Plans of a search per second, on all threads and on one: GPT-3 175B on 1,024 A100, 4,542 plans.

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
