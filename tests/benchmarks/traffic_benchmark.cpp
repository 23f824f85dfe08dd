// A step whose traffic shares links: prices, routes, folding and evaluation, without lowering.
// Targets where the heap (exponential, 10,000 pending) takes 67 ns per event:
//   175B on 1,024 GPUs     15 ms; scattered 300 ms; one slow node or half a NIC 50 ms
//   405B on 16,384 GPUs    30 ms; slow node 60 ms; scattered 900 ms
//   1T on 98,304 GPUs      400 ms, 120 MiB
//   experts on 9,216 GPUs  350 ms: all-to-alls of every layer, three levels of switches; lowered
//                          from a plan, as a user's step is
// `peak_mib` is the process's so far: of one case alone with --benchmark_filter.

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <string>

#include "scenarios/scenario/scenario.hpp"

namespace orrery::scenarios {
namespace {

using Changes = std::vector<std::pair<std::string, Json>>;

const Changes contiguous_nodes{{"/network", "events"}};
const Changes scattered_nodes{{"/placement", {{"scattered", 1}}}};
const Changes slow_node{
    {"/perturbations", Json::parse(R"([{"kind": "node", "at": "node3", "rate": 0.9}])")}};
const Changes half_nic{
    {"/perturbations", Json::parse(R"([{"kind": "nic", "at": "node3/nic1", "rate": 0.5}])")}};

/// limit  ms, where the heap takes 67 ns
void network(benchmark::State& state, double limit, const Scenario& base, const Changes& changes) {
  const models::Question question = base.replace(changes).question();
  double classes = 0, contention = 0;
  for (auto each : state) {
    const models::Prediction found = models::predict(question);
    state.SetIterationTime(found.network.seconds);
    classes = static_cast<double>(found.network.rank_classes);
    contention = ratio(found.network.contention, found.step);
  }
  state.counters["limit_ms"] = limit;
  state.counters["classes"] = classes;
  state.counters["contention"] = contention;
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  state.counters["peak_mib"] = static_cast<double>(used.ru_maxrss) / 1024;
}

Scenario trillion() {
  return Scenario::load(std::nullopt,
                        {.model = "gpt-1t",
                         .cluster = "dgx-h100 x 12288",
                         .plan = "tensor=8,pipeline=64,data=192,micro_batch=1,global_batch=12288",
                         .software = "megatron-lm"});
}

/// 96 layers of the model's, one a chunk.
Scenario experts() {
  return Scenario::load(std::nullopt, {.model = "qwen3-235b-a22b",
                                       .cluster = "dgx-h100 x 1152",
                                       .plan = "tensor=2,sequence=true,pipeline=12,"
                                               "virtual_stages=8,expert=64,data=384,micro_batch=1,"
                                               "global_batch=9216,seq_len=4096",
                                       .software = "megatron-lm"})
      .replace({{"/model/num_hidden_layers", 96}, {"/cluster/fabric/levels", 3}});
}

void step_175b(benchmark::State& state, double limit, const Changes& changes) {
  network(state, limit, Scenario::load("gpt3-175b-1024-a100"), changes);
}
void step_405b(benchmark::State& state, double limit, const Changes& changes) {
  network(state, limit, Scenario::load("llama3-405b-16384-h100"), changes);
}
void step_1t(benchmark::State& state, double limit, const Changes& changes) {
  network(state, limit, trillion(), changes);
}
void step_experts(benchmark::State& state, double limit, const Changes& changes) {
  network(state, limit, experts(), changes);
}

BENCHMARK_CAPTURE(step_175b, contiguous_nodes, 15, contiguous_nodes)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(step_175b, scattered_nodes, 300, scattered_nodes)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(step_175b, slow_node, 50, slow_node)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(step_175b, half_nic, 50, half_nic)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(step_405b, contiguous_nodes, 30, contiguous_nodes)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(step_405b, slow_node, 60, slow_node)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(step_405b, scattered_nodes, 900, scattered_nodes)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(step_1t, contiguous_nodes, 400, contiguous_nodes)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(step_experts, contiguous_nodes, 350, contiguous_nodes)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::scenarios
