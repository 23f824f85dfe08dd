#include <algorithm>

#include "calibrate/bench/kernels.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

constexpr int launches = 200;        // kernel launches per measurement, at least
constexpr int graphs_in_a_run = 50;  // below the queue depth at which the host must wait

}  // namespace

LaunchSubject::LaunchSubject(TimedBlock of, Bench& bench, As as)
    : of_{std::move(of)},
      bench_{bench},
      as_{as},
      operations_{runnable(*of_.block, bench.device())},
      kernels_{static_cast<std::int64_t>(operations_.size())} {
  ensure(!operations_.empty(), "a launch is of something");
  ensure(as == As::kernels || bench.device().graphs() != nullptr, "the device has graphs");
}

std::string LaunchSubject::name() const {
  return (as_ == As::graph ? "graph of " : "launch of ") + of_.name;
}

void LaunchSubject::launch_all() {
  for (const models::Operation* op : operations_) operands_->run(*op, 0);
}

/// Before the capture, every operation runs once: a device may choose an algorithm and allocate
/// memory then.
void LaunchSubject::prepare() {
  operands_ = std::make_unique<Operands>(bench_.device(), *of_.block, 1, of_.tokens);
  if (as_ == As::kernels) return;
  launch_all();
  bench_.device().finish();
  executor::Graphs& graphs = *bench_.device().graphs();
  graph_ = graphs.capture([this] { launch_all(); });
  kernels_ = std::max<std::int64_t>(1, graph_->nodes);
  graphs.launch(*graph_);  // the first launch uploads it to the GPU
  bench_.device().finish();
}

bool LaunchSubject::run(std::vector<Time>& times) {
  const std::int64_t rounds =
      as_ == As::graph ? graphs_in_a_run : (launches + kernels_ - 1) / kernels_;
  const std::int64_t launched = as_ == As::graph ? rounds : rounds * kernels_;
  SegmentTimer timer{bench_, models::Lane::compute, 20_us * launched};
  for (std::int64_t round = 0; round < rounds; ++round) {
    if (as_ == As::graph) {
      bench_.device().graphs()->launch(*graph_);
    } else {
      launch_all();
    }
  }
  timer.end_segment();
  const Time on_queue = timer.finish().front();
  times = {std::max(Time{1}, Time{timer.host_time().count() / launched}),
           std::max(Time{1}, Time{on_queue.count() / (rounds * kernels_)})};
  return true;
}

void LaunchSubject::finish() {
  if (graph_) bench_.device().graphs()->release(*graph_);
  graph_.reset();
  operands_.reset();
}

}  // namespace orrery::calibrate
