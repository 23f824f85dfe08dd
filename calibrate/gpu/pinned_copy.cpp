#include "calibrate/gpu/pinned_copy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "executor/errors.hpp"

namespace orrery::calibrate {

namespace {

using models::Lane;

constexpr Bytes pinned_beside = 64_MiB;

}  // namespace

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

Piece PinnedPair::piece_to_device(Lane queue) const {
  return {.queue = queue, .enqueue = [this, queue] { to_device(queue); }};
}

Piece PinnedPair::piece_from_device(Lane queue) const {
  return {.queue = queue, .enqueue = [this, queue] { from_device(queue); }};
}

/// First and last byte, by way of the device.
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
                             "page-locked memory comes back with other numbers: not timed"};
}

std::string PinnedCopy::name() const {
  return fmt::format("copy from and to page-locked memory {} B", size_.count());
}

void PinnedCopy::prepare() {
  pair_ = std::make_unique<PinnedPair>(bench_.device(), size_);
  pair_->check();
  host_time_ = {};
  repeats_ = 1;
  std::vector<Time> once(2);
  for (int i = 0; i < 2; ++i) run(once);
  const BenchSizes& sizes = bench_.sizes();
  const std::int64_t fits = sizes.interval.count() / std::max(once[0], once[1]).count();
  repeats_ = static_cast<int>(std::clamp<std::int64_t>(fits, 1, sizes.most_repeats));
}

/// Behind a run-up, so that the host is ahead.
bool PinnedCopy::run(std::vector<Time>& times) {
  executor::Device& device = bench_.device();
  const bool before = bench_.overseer().throttled();
  bench_.run_up(host_time_);
  device.wait(Lane::copy, device.mark(Lane::compute));
  const Time start = bench_.clock().now();
  const executor::Mark begin = device.mark(Lane::copy);
  for (int i = 0; i < repeats_; ++i) pair_->to_device(Lane::copy);
  const executor::Mark there = device.mark(Lane::copy);
  for (int i = 0; i < repeats_; ++i) pair_->from_device(Lane::copy);
  const executor::Mark back = device.mark(Lane::copy);
  host_time_ = bench_.clock().now() - start;
  device.finish();
  const auto each = [&](executor::Mark from, executor::Mark to) {
    return std::max(Time{1}, Time{bench_.between(from, to).count() / repeats_});
  };
  times = {each(begin, there), each(there, back)};
  device.forget_marks();
  return !before && !bench_.overseer().throttled();
}

std::vector<NamedBeside> beside_pinned_copies(const TimedBlock& product, QueueBench& bench) {
  executor::Device& device = bench.device();
  const Bytes size = std::min(pinned_beside, bench.sizes().run_up);
  const PinnedPair one{device, size}, other{device, size};
  const std::string to = fmt::format("copy from page-locked memory {} B", size.count());
  const std::string from = fmt::format("copy to page-locked memory {} B", size.count());
  // Of two queues, as one would put the second copy behind the first.
  const Piece in = one.piece_to_device(Lane::copy), out = other.piece_from_device(Lane::data);
  const BesideCounts counts = counts_for(device, in, out, span_beside);
  return {{to, from, measure_beside(device, in, out, counts)},
          beside_product(product, device, to, in),
          beside_product(product, device, from, out)};
}

}  // namespace orrery::calibrate
