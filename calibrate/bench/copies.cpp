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
    memory_.push_back(allocated(bench.device(), size_));
    bench.device().zero(memory_.back().get(), size_);
  }
  bench.device().finish();
}

void DeviceCopy::enqueue(int rank, SegmentTimer& timer) {
  for (int i = 0; i < repeats(); ++i) {
    const std::size_t at = static_cast<std::size_t>(2 * i) % memory_.size();
    ranks().device(rank).copy(memory_[at].get(), memory_[at + 1].get(), size_, Lane::compute);
  }
  timer.end_segment();
}

void DeviceCopy::tear_down() noexcept {
  memory_.clear();
}

PinnedPair::PinnedPair(executor::Device& device, Bytes size)
    : device_{device},
      size_{size},
      host_{device.allocate_host(size), {.device = &device, .of_host = true}},
      own_{allocated(device, size)} {
  std::memset(host_.get(), 1, static_cast<std::size_t>(size.count()));
  device.zero(own_.get(), size);
  device.finish();
}

/// Copies to the device and back, and compares the first and the last byte.
void PinnedPair::check() const {
  std::byte& first = *host_;
  std::byte& last = host_.get()[size_.count() - 1];
  first = last = std::byte{3};
  to_device(Lane::copy);
  device_.finish();
  first = last = std::byte{0};
  from_device(Lane::copy);
  device_.finish();
  if (first == std::byte{3} && last == std::byte{3}) return;
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
  memory_ = allocated(bench_.device(), size_);
}

bool PageableCopy::run(std::vector<Time>& times) {
  const Time begin = bench_.clock().now();
  bench_.device().write(host_.data(), memory_.get(), size_);
  const Time there = bench_.clock().now();
  bench_.device().read(memory_.get(), host_.data(), size_);
  times = {std::max(Time{1}, there - begin), std::max(Time{1}, bench_.clock().now() - there)};
  return true;
}

void PageableCopy::finish() {
  memory_.reset();
  host_.clear();
}

}  // namespace orrery::calibrate
