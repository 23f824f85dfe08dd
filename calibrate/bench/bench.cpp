#include "calibrate/bench/bench.hpp"

#include <algorithm>

#include "calibrate/bench/operands.hpp"
#include "models/program/block.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

constexpr models::Lane compute = models::Lane::compute;
constexpr double ahead = 1.5;             // times the host's last time, which varies
constexpr std::int64_t small_add = 1024;  // elements: a kernel of negligible duration

models::Block small_kernel() {
  models::Block block;
  for (const char* name : {"a", "b", "sum"}) {
    block.operands.push_back(
        {name, models::Role::temporary, models::DType::fp32, {1, 1, small_add}});
  }
  models::Operation add;
  add.kind = models::OpKind::add;
  add.name = "add";
  add.dtype = models::DType::fp32;
  add.reads = {0, 1};
  add.writes = {2};
  block.operations.push_back(std::move(add));
  return block;
}

}  // namespace

Bench::Bench(executor::Device& device, Clock& clock, ClockMonitor& monitor, const BenchSizes& sizes)
    : device_{device}, clock_{clock}, monitor_{monitor}, sizes_{sizes} {
  if (device.synchronous()) return;
  from_ = allocated(device, sizes.busy_copy);
  to_ = allocated(device, sizes.busy_copy);
  device.zero(from_.get(), sizes.busy_copy);
  device.zero(to_.get(), sizes.busy_copy);
  copy_ = time_copy();
}

Time Bench::mark_cost() {
  if (!mark_cost_) mark_cost_ = time_marks();
  return *mark_cost_;
}

/// Time of one busy copy: the fastest of three.
Time Bench::time_copy() {
  Time best{};
  for (int i = 0; i < 4; ++i) {  // the first one warms up
    const executor::Mark begin = device_.mark(compute);
    device_.copy(from_.get(), to_.get(), sizes_.busy_copy, compute);
    const executor::Mark end = device_.mark(compute);
    device_.finish();
    const Time taken = std::max(Time{1}, device_.time_of(end) - device_.time_of(begin));
    if (i == 1 || (i > 1 && taken < best)) best = taken;
  }
  device_.forget_marks();
  return best;
}

/// Additional time of a small kernel with a mark after it: the median of five measurements.
Time Bench::time_marks() {
  const models::Block block = small_kernel();
  const Operands operands{device_, block, 1, 1};
  std::vector<Time> looks;
  const auto pass = [&](bool marked) {
    keep_busy(20_us * sizes_.marks);
    const executor::Mark begin = device_.mark(compute);
    for (int i = 0; i < sizes_.marks; ++i) {
      operands.run(block.operations.front(), 0);
      if (marked) device_.mark(compute);
    }
    const executor::Mark end = device_.mark(compute);
    device_.finish();
    const Time taken = device_.time_of(end) - device_.time_of(begin);
    device_.forget_marks();
    return taken;
  };
  pass(true);
  for (int i = 0; i < 5; ++i) {
    const Time more = pass(true) - pass(false);
    looks.push_back(std::max(Time{}, Time{more.count() / sizes_.marks}));
  }
  return quantile(looks, 0.5);
}

void Bench::keep_busy(Time host) {
  if (device_.synchronous()) return;
  const auto wanted = static_cast<int>(ahead * ratio(host, copy_)) + 1;
  for (int i = 0; i < std::min(wanted, sizes_.most_busy_copies); ++i) {
    device_.copy(from_.get(), to_.get(), sizes_.busy_copy, compute);
  }
}

Time Bench::between(executor::Mark from, executor::Mark to) {
  const Time raw = device_.time_of(to) - device_.time_of(from);
  return std::max({raw - mark_cost_.value_or(Time{}), Time{raw.count() / 10}, Time{1}});
}

int Bench::copies_of(Bytes footprint) const {
  constexpr std::int64_t most = 32;
  const std::int64_t wanted =
      sizes_.uncached.count() / std::max<std::int64_t>(1, footprint.count());
  return static_cast<int>(std::clamp<std::int64_t>(wanted + 1, 1, most));
}

int Bench::repeats_for(Time once) const {
  const std::int64_t fits = sizes_.interval.count() / std::max<std::int64_t>(1, once.count());
  return static_cast<int>(std::clamp<std::int64_t>(fits, 1, sizes_.most_repeats));
}

SegmentTimer::SegmentTimer(Bench& bench, models::Lane queue, Time host, Core core)
    : bench_{bench}, queue_{queue}, core_{core} {
  executor::Device& device = bench.device();
  if (!device.synchronous()) {
    bench.mark_cost();  // measured before anything is enqueued
    bench.keep_busy(host);
    if (queue != compute) device.wait(queue, device.mark(compute));
    marks_.push_back(device.mark(queue));
  }
  started_ = bench.clock().now();
  begin();
}

void SegmentTimer::begin() {
  if (bench_.device().synchronous()) begin_ = {.busy = bench_.clock().busy()};
  begin_.now = bench_.clock().now();
}

void SegmentTimer::end_segment() {
  if (!bench_.device().synchronous()) {
    marks_.push_back(bench_.device().mark(queue_));
    return;
  }
  Time taken = bench_.clock().now() - begin_.now;
  if (core_ == Core::own) taken = std::min(taken, bench_.clock().busy() - begin_.busy);
  times_.push_back(std::max(Time{1}, taken));
  begin();
}

void SegmentTimer::restart() {
  if (!bench_.device().synchronous()) marks_.assign(1, bench_.device().mark(queue_));
  times_.clear();
  begin();
}

std::vector<Time> SegmentTimer::finish() {
  host_time_ = bench_.clock().now() - started_;
  executor::Device& device = bench_.device();
  device.finish();
  for (std::size_t i = 1; i < marks_.size(); ++i) {
    times_.push_back(bench_.between(marks_[i - 1], marks_[i]));
  }
  device.forget_marks();
  return std::move(times_);
}

}  // namespace orrery::calibrate
