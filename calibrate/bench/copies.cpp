#include "calibrate/bench/copies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "executor/errors.hpp"

namespace orrery::calibrate {

namespace {

using models::Lane;

}  // namespace

std::string DeviceCopy::name() const {
  return fmt::format("copy on the device {} B", size_.count());
}

void DeviceCopy::set_up() {
  const Bench& bench = ranks().bench(0);
  const int pairs = bench.copies_of(size_ * 2);
  for (int i = 0; i < 2 * pairs; ++i) {
    memory_.push_back(bench.device().allocate(size_));
    bench.device().zero(memory_.back(), size_);
  }
  bench.device().finish();
}

void DeviceCopy::enqueue(int rank, SegmentTimer& timer) {
  for (int i = 0; i < repeats(); ++i) {
    const std::size_t at = static_cast<std::size_t>(2 * i) % memory_.size();
    ranks().device(rank).copy(memory_[at], memory_[at + 1], size_, Lane::compute);
  }
  timer.end_segment();
}

void DeviceCopy::tear_down() noexcept {
  for (std::byte* each : memory_) ranks().device(0).release(each);
  memory_.clear();
}

PinnedPair::PinnedPair(executor::Device& device, Bytes size) : device_{device}, size_{size} {
  host_ = device.allocate_host(size);
  try {
    own_ = device.allocate(size);
  } catch (...) {
    device.release_host(host_);
    throw;
  }
  std::memset(host_, 1, static_cast<std::size_t>(size.count()));
  device.zero(own_, size);
  device.finish();
}

PinnedPair::~PinnedPair() {
  device_.release(own_);
  device_.release_host(host_);
}

/// Copies to the device and back, and compares the first and the last byte.
void PinnedPair::check() const {
  const auto last = static_cast<std::size_t>(size_.count() - 1);
  host_[0] = host_[last] = std::byte{3};
  to_device(Lane::copy);
  device_.finish();
  host_[0] = host_[last] = std::byte{0};
  from_device(Lane::copy);
  device_.finish();
  if (host_[0] == std::byte{3} && host_[last] == std::byte{3}) return;
  throw executor::RunFailure{executor::Exit::local_failure,
                             "a copy through page-locked memory changed the data: not timed"};
}

std::string PinnedCopy::name() const {
  return fmt::format("copy from and to page-locked memory {} B", size_.count());
}

void PinnedCopy::set_up() {
  pair_ = std::make_unique<PinnedPair>(ranks().device(0), size_);
  pair_->check();
}

void PinnedCopy::enqueue(int /*rank*/, SegmentTimer& timer) {
  for (int i = 0; i < repeats(); ++i) pair_->to_device(Lane::copy);
  timer.end_segment();
  for (int i = 0; i < repeats(); ++i) pair_->from_device(Lane::copy);
  timer.end_segment();
}

std::string PageableCopy::name() const {
  return fmt::format("copy from and to the host {} B", size_.count());
}

void PageableCopy::prepare() {
  host_.assign(static_cast<std::size_t>(size_.count()), std::byte{1});
  memory_ = bench_.device().allocate(size_);
}

bool PageableCopy::run(std::vector<Time>& times) {
  const Time begin = bench_.clock().now();
  bench_.device().write(host_.data(), memory_, size_);
  const Time there = bench_.clock().now();
  bench_.device().read(memory_, host_.data(), size_);
  times = {std::max(Time{1}, there - begin), std::max(Time{1}, bench_.clock().now() - there)};
  return true;
}

void PageableCopy::finish() {
  if (memory_ != nullptr) bench_.device().release(memory_);
  memory_ = nullptr;
  host_.clear();
}

}  // namespace orrery::calibrate
