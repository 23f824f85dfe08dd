#include "calibrate/gpu/queue_bench.hpp"

#include <algorithm>

#include "calibrate/gpu/operands.hpp"
#include "models/program/block.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

constexpr models::Lane compute = models::Lane::compute;
constexpr double ahead = 1.5;             // of the host's last time: it varies
constexpr std::int64_t small_add = 1024;  // elements: a kernel that is hardly there

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

QueueBench::QueueBench(executor::Device& device, Clock& clock, Overseer& overseer,
                       const BenchSizes& sizes)
    : device_{device}, clock_{clock}, overseer_{overseer}, sizes_{sizes} {
  from_ = device.allocate(sizes.run_up);
  try {
    to_ = device.allocate(sizes.run_up);
    device.zero(from_, sizes.run_up);
    device.zero(to_, sizes.run_up);
    copy_ = time_copy();
    mark_cost_ = time_marks();
  } catch (...) {
    device.release(from_);
    if (to_ != nullptr) device.release(to_);
    throw;
  }
}

QueueBench::~QueueBench() {
  device_.release(from_);
  device_.release(to_);
}

/// The quickest of three.
Time QueueBench::time_copy() {
  Time best{};
  for (int i = 0; i < 4; ++i) {  // the first one warms up
    const executor::Mark begin = device_.mark(compute);
    device_.copy(from_, to_, sizes_.run_up, compute);
    const executor::Mark end = device_.mark(compute);
    device_.finish();
    const Time taken = std::max(Time{1}, device_.time_of(end) - device_.time_of(begin));
    if (i == 1 || (i > 1 && taken < best)) best = taken;
  }
  device_.forget_marks();
  return best;
}

/// What small kernels take longer with a mark after each: the median of five looks.
Time QueueBench::time_marks() {
  const models::Block block = small_kernel();
  const models::Model model;
  const Operands operands{device_, block, 1, 1};
  std::vector<Time> looks;
  const auto pass = [&](bool marked) {
    run_up(20_us * sizes_.marks);
    const executor::Mark begin = device_.mark(compute);
    for (int i = 0; i < sizes_.marks; ++i) {
      operands.run(block.operations.front(), 0, model);
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

void QueueBench::run_up(Time host) {
  const auto wanted = static_cast<int>(ahead * ratio(host, copy_)) + 1;
  for (int i = 0; i < std::min(wanted, sizes_.most_run_ups); ++i) {
    device_.copy(from_, to_, sizes_.run_up, compute);
  }
}

Time QueueBench::between(executor::Mark from, executor::Mark to) const {
  const Time raw = device_.time_of(to) - device_.time_of(from);
  return std::max({raw - mark_cost_, Time{raw.count() / 10}, Time{1}});
}

int QueueBench::copies_of(Bytes footprint) const {
  constexpr std::int64_t most = 32;
  const std::int64_t wanted = sizes_.cold.count() / std::max<std::int64_t>(1, footprint.count());
  return static_cast<int>(std::clamp<std::int64_t>(wanted + 1, 1, most));
}

void QueueSubject::prepare() {
  set_up();
  bench_.device().finish();
  bench_.overseer().forget();
}

bool QueueSubject::run(std::vector<Time>& times) {
  executor::Device& device = bench_.device();
  const bool before = bench_.overseer().throttled();
  bench_.run_up(host_time_);
  std::vector<executor::Mark> marks{device.mark(compute)};
  const Time begin = bench_.clock().now();
  enqueue(marks);
  host_time_ = bench_.clock().now() - begin;
  device.finish();
  ensure(marks.size() == parts() + 1, "a mark stands behind every part");
  for (std::size_t p = 0; p < parts(); ++p) {
    times[p] = std::max(Time{bench_.between(marks[p], marks[p + 1]).count() / repeats(p)}, Time{1});
  }
  device.forget_marks();
  return !before && !bench_.overseer().throttled();
}

void QueueSubject::finish() {
  conditions_ = bench_.overseer().seen();
  tear_down();
}

}  // namespace orrery::calibrate
