// Plans of a search per second, on all threads and on one, if every plan is estimated: GPT-3 175B
// on 1,024 A100. lowered_plan is the mean of what the plans take that memory_floor does not rule
// out (lower, bound, evaluate), 0.5 ms at most where the heap (exponential, 10,000 pending) takes
// 67 ns per event. `proven` finds the ten best plans and proves the best, `survey` the best plan on
// every cluster that can be rented, both on one thread.

#include <benchmark/benchmark.h>

#include <ctime>

#include "scenarios/question/purchase_request.hpp"
#include "scenarios/search/comparison.hpp"
#include "tests/scenarios/search/queries.hpp"

namespace orrery::scenarios {
namespace {

/// Of the process: what one thread takes on a machine that nobody else uses.
double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

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
    const double begin = cpu_seconds();
    const PlanAnswer answer = found_by(1);
    const double took = cpu_seconds() - begin;
    const std::int64_t lowered = answer.considered - answer.too_large_by_sizes - answer.passed_over;
    state.SetIterationTime(took / static_cast<double>(lowered));
  }
  state.counters["limit_ms"] = 0.5;
}

struct ProvenCase {
  const char* model;
  const char* cluster;
  std::int64_t global_batch, seq_len;
  double limit_ms;
  double gap = 0;
};
constexpr ProvenCase proven_cases[] = {
    {"llama3.1-70b", "dgx-h100 x 32", 1024, 8192, 1000},
    {"gpt3-175b", "dgx-a100-80gb x 512", 1536, 2048, 2000},
    {"llama3.1-405b", "dgx-h100 x 12500", 12500, 8192, 10000},
    {"qwen3-235b-a22b", "dgx-h100 x 32", 1024, 4096, 30000},
    {"qwen3-235b-a22b", "dgx-h100 x 256", 2048, 4096, 30000},
    {"llama3.1-70b", "dgx-h100 x 8", 1024, 8192, 10000},
    {"gpt3-175b", "dgx-a100-80gb x 2048", 1536, 2048, 10000},
    {"qwen3-235b-a22b", "dgx-h100 x 64", 1024, 4096, 10000, 0.1}};

void proven(benchmark::State& state) {
  const ProvenCase& asked = proven_cases[state.range(0)];
  PlanQuery query =
      plan_query(asked.model, asked.cluster, asked.global_batch, asked.seq_len, Breadth::full);
  const Document profile = Document::from(models::software_profile("megatron-core"), "profile");
  query.software = models::read_software(profile.root());
  for (auto each : state) {
    const double begin = cpu_seconds();
    const PlanAnswer answer = search_plans(query, objective_named("time"), Workers{1, {}},
                                           Wanted{.best = 10, .gap = asked.gap});
    state.SetIterationTime(cpu_seconds() - begin);
    const auto found = certificate_of(answer, objective_named("time"));
    if (!found || found->gap > asked.gap) return state.SkipWithError("not proven");
    state.counters["plans"] = static_cast<double>(answer.considered);
  }
  state.counters["limit_ms"] = asked.limit_ms;
}

void survey_of_offers(benchmark::State& state) {
  const std::string model = "llama3-8b", tokens = "1T";
  PurchaseRequest request;
  request.model = model;
  request.tokens = tokens;
  request.threads = 1;
  std::int64_t plans = 0;
  for (auto each : state) plans = survey(request, {}).answer.plans;
  count(state, plans);
  state.counters["limit_ms"] = 3000;
}

void enumerate(benchmark::State& state) {
  const PlanQuery query = gpt3();
  std::size_t plans = 0;
  for (auto each : state) plans = enumerate_plans(query).plans.size();
  count(state, static_cast<std::int64_t>(plans));
}

BENCHMARK(search)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(lowered_plan)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(proven)
    ->DenseRange(0, static_cast<int>(std::size(proven_cases)) - 1)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(survey_of_offers)->Iterations(1)->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);
BENCHMARK(enumerate)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::scenarios
