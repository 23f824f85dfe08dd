#include "calibrate/bench/overlap.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "calibrate/bench/collectives.hpp"
#include "calibrate/bench/copies.hpp"

namespace orrery::calibrate {

namespace {

using executor::Device;
using executor::Mark;
using models::Lane;

/// Ratio of the other queue's work to the timed work, in time alone: the timed work ends first even
/// if overlap makes it three times as long.
constexpr int cover = 4;
constexpr int looks = 5;
constexpr Time span = 4_ms;  // duration of the pieces timed in one measurement
constexpr Bytes copied = 256_MiB, pinned = 64_MiB;
constexpr int rounds_of_load = 32;

Time one_of(Device& device, Mark begin, Mark end, int count) {
  device.finish();
  const Time taken = device.time_of(end) - device.time_of(begin);
  device.forget_marks();
  return std::max(Time{1}, Time{taken.count() / count});
}

Time alone(Device& device, const QueueWork& work, int count) {
  const Mark begin = device.mark(work.queue);
  for (int i = 0; i < count; ++i) work.enqueue();
  return one_of(device, begin, device.mark(work.queue), count);
}

Time overlapped(Device& device, const QueueWork& timed, int count, const QueueWork& covering,
                int covers) {
  covering.enqueue();
  device.wait(timed.queue, device.mark(covering.queue));
  for (int i = 0; i < cover * covers; ++i) covering.enqueue();
  const Mark begin = device.mark(timed.queue);
  for (int i = 0; i < count; ++i) timed.enqueue();
  return one_of(device, begin, device.mark(timed.queue), count);
}

int fitting(Time once) {
  constexpr std::int64_t most = 64;
  return static_cast<int>(std::clamp<std::int64_t>(span.count() / once.count(), 1, most));
}

/// Runs a block's only operation, cycling through copies of its operands.
class CyclingProduct {
 public:
  CyclingProduct(const TimedBlock& of, Device& device, int copies)
      : of_{of}, operands_{device, *of.block, copies, of.tokens} {
    device.finish();
  }
  void enqueue() { operands_.run(of_.block->operations.front(), turn_++ % operands_.copies()); }
  QueueWork work() {
    return {.queue = Lane::compute, .enqueue = [this] { enqueue(); }};
  }

 private:
  const TimedBlock& of_;
  Operands operands_;
  int turn_ = 0;
};

NamedOverlap overlap_of(const TimedBlock& product, Device& device, std::string what,
                        const QueueWork& other) {
  CyclingProduct own{product, device, 2};
  const OverlapCounts counts = overlap_counts(device, own.work(), other);
  return {product.name, std::move(what), measure_overlap(device, own.work(), other, counts)};
}

}  // namespace

OverlapCounts overlap_counts(Device& device, const QueueWork& kernel, const QueueWork& other) {
  alone(device, kernel, 1);  // warms up
  alone(device, other, 1);
  const Time one_kernel = alone(device, kernel, 2), one_other = alone(device, other, 2);
  return {.kernel = fitting(one_kernel), .other = fitting(one_other)};
}

OverlapTimes measure_overlap(Device& device, const QueueWork& kernel, const QueueWork& other,
                             const OverlapCounts& counts) {
  std::vector<Time> of[4];
  for (int i = 0; i < looks; ++i) {
    of[0].push_back(alone(device, kernel, counts.kernel));
    of[1].push_back(alone(device, other, counts.other));
    of[2].push_back(overlapped(device, kernel, counts.kernel, other, counts.other));
    of[3].push_back(overlapped(device, other, counts.other, kernel, counts.kernel));
  }
  return {.kernel = quantile(of[0], 0.5),
          .other = quantile(of[1], 0.5),
          .kernel_overlapped = quantile(of[2], 0.5),
          .other_overlapped = quantile(of[3], 0.5)};
}

std::vector<NamedOverlap> overlap_with_pinned_copies(const TimedBlock& product, Bench& bench) {
  Device& device = bench.device();
  const Bytes size = std::min(pinned, bench.sizes().busy_copy);
  const PinnedPair one{device, size}, other{device, size};
  const std::string to = fmt::format("copy from page-locked memory {} B", size.count());
  const std::string from = fmt::format("copy to page-locked memory {} B", size.count());
  // On two queues, as one would serialise the copies.
  const QueueWork in{Lane::copy, [&] { one.to_device(Lane::copy); }};
  const QueueWork out{Lane::data, [&] { other.from_device(Lane::data); }};
  const OverlapCounts counts = overlap_counts(device, in, out);
  return {{to, from, measure_overlap(device, in, out, counts)},
          overlap_of(product, device, to, in),
          overlap_of(product, device, from, out)};
}

NamedOverlap overlap_with_copy(const TimedBlock& product, Bench& bench) {
  Device& device = bench.device();
  const Bytes size = std::min(copied, bench.sizes().busy_copy);
  models::Block memory;
  memory.operands.resize(2);
  for (models::Operand& each : memory.operands) {
    each.dtype = models::DType::fp32;
    each.shape = {1, 1, size.count() / 4};
  }
  const Operands both{device, memory, 1, 1};
  device.finish();
  const QueueWork copy{Lane::copy, [&] {
                         device.copy(both.view(0, 0).data, both.view(0, 1).data, size, Lane::copy);
                       }};
  return overlap_of(product, device, fmt::format("copy on the device {} B", size.count()), copy);
}

NamedOverlap overlap_with_all_reduce(const TimedBlock& product, RankSet& ranks, Bytes asked) {
  const Bytes size = cut_evenly(asked, ranks.ranks());
  CollectiveSubject collective{models::Collective::all_reduce, size, ranks};
  collective.prepare();
  const auto on_all = [&](const auto& measure) {
    ranks.threads.all([&](int rank) {
      Device& device = ranks.device(rank);
      CyclingProduct own{product, device, 2};
      measure(rank, device, own.work(),
              QueueWork{Lane::data, [&, rank] { collective.call(rank, size); }});
      device.finish();
    });
  };
  OverlapCounts counts;  // rank 0's, so that all ranks make the same calls
  on_all([&](int rank, Device& device, const QueueWork& work, const QueueWork& message) {
    const OverlapCounts own = overlap_counts(device, work, message);
    if (rank == 0) counts = own;
  });
  OverlapTimes times;
  on_all([&](int rank, Device& device, const QueueWork& work, const QueueWork& message) {
    const OverlapTimes own = measure_overlap(device, work, message, counts);
    if (rank == 0) times = own;
  });
  collective.finish();
  return {product.name, collective.name(), times};
}

Time time_under_load(const TimedBlock& product, Bench& bench, Time span_of_load) {
  CyclingProduct work{product, bench.device(), bench.copies_of(footprint(*product.block))};
  std::vector<Time> rounds;
  bench.monitor().forget();
  const Time end = bench.clock().now() + span_of_load;
  do {
    SegmentTimer timer{bench, Lane::compute, Time{}};
    for (int i = 0; i < rounds_of_load; ++i) work.enqueue();
    timer.end_segment();
    rounds.push_back(Time{timer.finish().front().count() / rounds_of_load});
  } while (bench.clock().now() < end || rounds.size() < 4);
  const auto third = static_cast<std::ptrdiff_t>((rounds.size() + 2) / 3);
  return std::max(Time{1}, median(std::vector<Time>(rounds.end() - third, rounds.end())));
}

}  // namespace orrery::calibrate
