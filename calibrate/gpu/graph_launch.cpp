#include "calibrate/gpu/graph_launch.hpp"

#include <algorithm>

#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

using executor::Mark;

constexpr int graphs_in_a_run = 50;  // fewer than a queue holds before its host must wait

executor::Graphs& graphs_of(const executor::Device& device) {
  executor::Graphs* const graphs = device.graphs();
  ensure(graphs != nullptr, "graphs are timed on a device that has them");
  return *graphs;
}

}  // namespace

GraphLaunch::GraphLaunch(TimedBlock of, QueueBench& bench)
    : of_{std::move(of)},
      bench_{bench},
      graphs_{graphs_of(bench.device())},
      operations_{runnable(*of_.block, bench.device())} {
  ensure(!operations_.empty(), "a graph is of something");
}

/// Once operation by operation, as a device may choose and take memory then; and captured.
void GraphLaunch::prepare() {
  operands_ = std::make_unique<Operands>(bench_.device(), *of_.block, 1, of_.model->vocab);
  const auto all = [this] {
    for (const models::Operation* op : operations_) operands_->run(*op, 0, *of_.model);
  };
  all();
  bench_.device().finish();
  graph_ = graphs_.capture(all);
  nodes_ = graph_->nodes;
  graphs_.launch(*graph_);  // the first one takes it to the GPU
  bench_.device().finish();
}

bool GraphLaunch::run(std::vector<Time>& times) {
  executor::Device& device = bench_.device();
  bench_.run_up(20_us * graphs_in_a_run);
  const Mark before = device.mark(models::Lane::compute);
  const Time begin = bench_.clock().now();
  for (int i = 0; i < graphs_in_a_run; ++i) graphs_.launch(*graph_);
  const Time host = bench_.clock().now() - begin;
  const Mark behind = device.mark(models::Lane::compute);
  device.finish();
  const std::int64_t launched = graphs_in_a_run * std::max<std::int64_t>(1, nodes_);
  times = {std::max(Time{1}, Time{host.count() / graphs_in_a_run}),
           std::max(Time{1}, Time{bench_.between(before, behind).count() / launched})};
  device.forget_marks();
  return true;
}

void GraphLaunch::finish() {
  if (graph_) graphs_.release(*graph_);
  graph_.reset();
  operands_.reset();
}

}  // namespace orrery::calibrate
