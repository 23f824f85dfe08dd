#pragma once
// Timing pieces of work on one device. On a device with queues: marks between the pieces, read when
// all have ended; the host must stay ahead, or marks would show its own pace, so memory is copied
// first for as long as the host takes to enqueue the rest. A mark takes time itself: it is measured
// and subtracted. On a device whose `run` returns when the kernel has ended: the host's clock.

#include <optional>
#include <vector>

#include "calibrate/bench/telemetry.hpp"
#include "calibrate/harness/harness.hpp"
#include "executor/device/device.hpp"

namespace orrery::calibrate {

/// How large what surrounds the timed work is; a test's is small.
struct BenchSizes {
  Bytes run_up = 256_MiB;  // of one copy before the timed work
  Bytes cold = 128_MiB;    // of operands that work cycles through: beyond any cache
  Time interval = 200_us;  // that a repeated piece of work should fill
  int most_repeats = 64;   // ... and how often it may be repeated
  int most_run_ups = 64;   // copies
  int marks = 100;         // that a mark's own time is found from
};

/// A device and what its points share. One thread, the device's.
class Bench {
 public:
  /// All outlive the bench. Errors  no room for the run-up's copies: RunFailure
  Bench(executor::Device& device, Clock& clock, ClockMonitor& monitor, const BenchSizes& sizes);
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  executor::Device& device() const { return device_; }
  Clock& clock() const { return clock_; }
  ClockMonitor& monitor() const { return monitor_; }
  const BenchSizes& sizes() const { return sizes_; }
  /// Between two kernels; measured when it is first asked for.
  Time mark_cost();

  /// Keeps the compute queue busy for about that long, while the host enqueues.
  void run_up(Time host);
  /// Between two marks of one queue, minus a mark's own time; at least a tenth is left.
  Time between(executor::Mark from, executor::Mark to);
  /// As many copies of operands as work must cycle through to find none in a cache.
  int copies_of(Bytes footprint) const;
  /// How often work that takes `once` fits into the interval.
  int repeats_for(Time once) const;

 private:
  Time time_copy();
  Time time_marks();

  executor::Device& device_;
  Clock& clock_;
  ClockMonitor& monitor_;
  BenchSizes sizes_;
  std::byte* from_ = nullptr;
  std::byte* to_ = nullptr;
  Time copy_{};
  std::optional<Time> mark_cost_;
};

/// Times pieces of work that follow each other on one queue.
class Laps {
 public:
  /// Whose time counts on a device without queues: the wall clock's, or, where every rank has a
  /// core of its own, what the thread itself used of it.
  enum class Core : std::uint8_t { shared, own };

  /// host  what the host takes to enqueue all pieces, as far as known
  Laps(Bench& bench, models::Lane queue, Time host, Core core = Core::shared);
  /// A piece ends here, and the next one begins.
  void lap();
  /// What was enqueued so far is no piece: the first one begins here.
  void restart();
  /// Waits for the device and forgets its marks. One time for each piece.
  std::vector<Time> finish();
  /// The host's time from the first piece to `finish`.
  Time host_time() const { return host_time_; }

 private:
  struct Look {
    Time now{}, busy{};
  };
  void begin();

  Bench& bench_;
  models::Lane queue_;
  Core core_;
  Time started_{}, host_time_{};
  std::vector<executor::Mark> marks_;  // with queues
  Look begin_{};                       // without
  std::vector<Time> times_;
};

}  // namespace orrery::calibrate
