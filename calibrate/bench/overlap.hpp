#pragma once
// Two queues of one device at once: how much longer either's work takes while the other runs.
// Pieces are timed that lie wholly within the other queue's.

#include <functional>
#include <string>
#include <vector>

#include "calibrate/bench/kernels.hpp"

namespace orrery::calibrate {

/// Work that can be enqueued again and again.
struct QueueWork {
  models::Lane queue = models::Lane::compute;
  std::function<void()> enqueue;
};

/// Times of one piece of either work.
struct OverlapTimes {
  Time kernel{}, other{};                        // alone
  Time kernel_overlapped{}, other_overlapped{};  // while the other runs
};

/// How many pieces are timed; the same on all ranks of a collective.
struct OverlapCounts {
  int kernel = 1, other = 1;
};
/// So many that each lasts for some milliseconds. Forgets the device's marks.
OverlapCounts overlap_counts(executor::Device& device, const QueueWork& kernel,
                             const QueueWork& other);
/// Median of five looks. Forgets the device's marks.
OverlapTimes measure_overlap(executor::Device& device, const QueueWork& kernel,
                             const QueueWork& other, const OverlapCounts& counts);

struct NamedOverlap {
  std::string kernel, other;  // "gemm bf16 4096 x 4096 x 4096", "copy on the device"
  OverlapTimes times;
};

/// Page-locked copies to the device and from it at once, then either with the product.
std::vector<NamedOverlap> overlap_with_pinned_copies(const TimedBlock& product, Bench& bench);

/// With a copy of memory on another queue: what one GPU has in place of a collective, and called
/// so.
NamedOverlap overlap_with_copy(const TimedBlock& product, Bench& bench);

/// With an all-reduce, on all ranks at once; rank 0's times.
NamedOverlap overlap_with_all_reduce(const TimedBlock& product, RankSet& ranks, Bytes size);

/// The block's one operation without a pause for so long, in rounds of 32, four at the least: the
/// median of the last third.
Time time_under_load(const TimedBlock& work, Bench& bench, Time span);

}  // namespace orrery::calibrate
