#pragma once
// Overlap of two queues of one device: how much longer the work of either takes while the other
// runs. The timed pieces lie wholly within the other queue's work.

#include <functional>
#include <string>
#include <vector>

#include "calibrate/bench/kernels.hpp"

namespace orrery::calibrate {

/// Work on one queue that can be enqueued repeatedly.
struct QueueWork {
  models::Lane queue = models::Lane::compute;
  std::function<void()> enqueue;
};

/// Times of one piece of each work.
struct OverlapTimes {
  Time kernel{}, other{};                        // alone
  Time kernel_overlapped{}, other_overlapped{};  // while the other runs
};

/// How many pieces are timed; the same on all ranks of a collective.
struct OverlapCounts {
  int kernel = 1, other = 1;
};
/// Counts with which each work lasts for some milliseconds. Forgets the device's marks.
OverlapCounts overlap_counts(executor::Device& device, const QueueWork& kernel,
                             const QueueWork& other);
/// Medians of five measurements. Forgets the device's marks.
OverlapTimes measure_overlap(executor::Device& device, const QueueWork& kernel,
                             const QueueWork& other, const OverlapCounts& counts);

struct NamedOverlap {
  std::string kernel, other;  // "gemm bf16 4096 x 4096 x 4096", "copy on the device"
  OverlapTimes times;
};

/// Overlap of page-locked copies to the device and from it, then of either with the GEMM.
std::vector<NamedOverlap> overlap_with_pinned_copies(const TimedBlock& product, Bench& bench);

/// Overlap with a copy of memory on another queue: the substitute for a collective on a single GPU,
/// reported as a copy.
NamedOverlap overlap_with_copy(const TimedBlock& product, Bench& bench);

/// Overlap with an all-reduce, on all ranks concurrently; rank 0's times.
NamedOverlap overlap_with_all_reduce(const TimedBlock& product, RankSet& ranks, Bytes size);

/// Time of the block's only operation under sustained load: it runs without a pause for `span`, in
/// rounds of 32, at least four; the median of the last third of the rounds.
Time time_under_load(const TimedBlock& work, Bench& bench, Time span);

}  // namespace orrery::calibrate
