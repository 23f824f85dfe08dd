#include "calibrate/gpu/queue_work.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

using executor::Mark;
using models::Operation;
using models::OpKind;

constexpr models::Lane on_compute = models::Lane::compute;
constexpr int most_layers = 4;  // that take turns
constexpr int launches = 200;   // at least, for the time of one

/// How often work that took `once` fits into the interval.
int repeats_for(Time once, const BenchSizes& sizes) {
  const std::int64_t fits = sizes.interval.count() / std::max<std::int64_t>(1, once.count());
  return static_cast<int>(std::clamp<std::int64_t>(fits, 1, sizes.most_repeats));
}

}  // namespace

std::vector<const Operation*> runnable(const models::Block& block, const executor::Device& device) {
  std::vector<const Operation*> found;
  for (const Operation& op : block.operations) {
    const bool elsewhere = op.kind == OpKind::collective || op.kind == OpKind::copy ||
                           op.queue != models::Lane::compute;
    if (!elsewhere && device.refusal(op).empty()) found.push_back(&op);
  }
  return found;
}

BlockOnQueue::BlockOnQueue(TimedBlock of, QueueBench& bench)
    : QueueSubject{bench}, of_{std::move(of)}, operations_{runnable(*of_.block, bench.device())} {}

void BlockOnQueue::set_up() {
  const int layers = std::min(most_layers, bench().copies_of(footprint(*of_.block)));
  operands_ = std::make_unique<Operands>(bench().device(), *of_.block, layers, of_.model->vocab);
  turn_ = 0;
}

void BlockOnQueue::enqueue(std::vector<Mark>& marks) {
  const int layer = turn_++ % operands_->copies();
  for (const Operation* op : operations_) {
    operands_->run(*op, layer, *of_.model);
    marks.push_back(bench().device().mark(on_compute));
  }
}

void OperationOnQueue::set_up() {
  const OpKind kind = operation().kind;
  const bool product = kind == OpKind::gemm || kind == OpKind::grouped_gemm;
  operands_ = std::make_unique<Operands>(
      bench().device(), *of_.block, bench().copies_of(footprint(*of_.block)), of_.model->vocab);
  if (product) check_product(bench().device(), *of_.block, *operands_, *of_.model);
  repeats_ = 1;
  std::vector<Time> once(1);
  for (int i = 0; i < 2; ++i) run(once);
  repeats_ = repeats_for(once[0], bench().sizes());
}

void OperationOnQueue::enqueue(std::vector<Mark>& marks) {
  for (int i = 0; i < repeats_; ++i) {
    operands_->run(operation(), turn_++ % operands_->copies(), *of_.model);
  }
  marks.push_back(bench().device().mark(on_compute));
}

std::string CopyOnQueue::name() const {
  return fmt::format("copy on the device {} B", size_.count());
}

void CopyOnQueue::set_up() {
  const int pairs = bench().copies_of(size_ * 2);
  for (int i = 0; i < 2 * pairs; ++i) {
    memory_.push_back(bench().device().allocate(size_));
    bench().device().zero(memory_.back(), size_);
  }
  repeats_ = 1;
  std::vector<Time> once(1);
  for (int i = 0; i < 2; ++i) run(once);
  repeats_ = repeats_for(once[0], bench().sizes());
}

void CopyOnQueue::enqueue(std::vector<Mark>& marks) {
  for (int i = 0; i < repeats_; ++i) {
    const std::size_t at = static_cast<std::size_t>(2 * i) % memory_.size();
    bench().device().copy(memory_[at], memory_[at + 1], size_, on_compute);
  }
  marks.push_back(bench().device().mark(on_compute));
}

void CopyOnQueue::tear_down() noexcept {
  for (std::byte* each : memory_) bench().device().release(each);
  memory_.clear();
}

std::string HostCopy::name() const {
  return fmt::format("copy from and to the host {} B", size_.count());
}

void HostCopy::prepare() {
  host_.assign(static_cast<std::size_t>(size_.count()), std::byte{1});
  memory_ = bench_.device().allocate(size_);
}

bool HostCopy::run(std::vector<Time>& times) {
  const Time begin = bench_.clock().now();
  bench_.device().write(host_.data(), memory_, size_);
  const Time there = bench_.clock().now();
  bench_.device().read(memory_, host_.data(), size_);
  times = {std::max(Time{1}, there - begin), std::max(Time{1}, bench_.clock().now() - there)};
  return true;
}

void HostCopy::finish() {
  if (memory_ != nullptr) bench_.device().release(memory_);
  memory_ = nullptr;
  host_.clear();
}

LaunchSubject::LaunchSubject(TimedBlock of, QueueBench& bench)
    : of_{std::move(of)}, bench_{bench}, operations_{runnable(*of_.block, bench.device())} {
  ensure(!operations_.empty(), "a launch is of something");
}

void LaunchSubject::prepare() {
  operands_ = std::make_unique<Operands>(bench_.device(), *of_.block, 1, of_.model->vocab);
}

bool LaunchSubject::run(std::vector<Time>& times) {
  executor::Device& device = bench_.device();
  const auto each = static_cast<std::int64_t>(operations_.size());
  const std::int64_t rounds = (launches + each - 1) / each;
  bench_.run_up(20_us * (rounds * each));
  const Mark before = device.mark(on_compute);
  const Time begin = bench_.clock().now();
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (const Operation* op : operations_) operands_->run(*op, 0, *of_.model);
  }
  const Time host = bench_.clock().now() - begin;
  const Mark behind = device.mark(on_compute);
  device.finish();
  times = {std::max(Time{1}, Time{host.count() / (rounds * each)}),
           std::max(Time{1}, Time{bench_.between(before, behind).count() / (rounds * each)})};
  device.forget_marks();
  return true;
}

}  // namespace orrery::calibrate
