#pragma once
// Times pieces of work on one device. A device with queues records marks (events) between the
// pieces, which are read when all have ended. The host must enqueue ahead of the device, or marks
// would show the host's pace; so memory is copied first for as long as the host takes to enqueue
// the rest. A mark's own time is measured and subtracted. A synchronous device, whose `run` returns
// when the kernel has ended, is timed by the host's clock.

#include <optional>
#include <vector>

#include "calibrate/bench/device_memory.hpp"
#include "calibrate/bench/telemetry.hpp"
#include "calibrate/harness/harness.hpp"
#include "executor/device/device.hpp"

namespace orrery::calibrate {

/// Sizes of the work around the timed work; tests use small ones.
struct BenchSizes {
  Bytes busy_copy = 256_MiB;  // one copy before the timed work
  Bytes uncached = 128_MiB;   // all operand copies that work cycles through: beyond any cache
  Time interval = 200_us;     // target duration of a repeated piece of work
  int most_repeats = 64;      // upper limit of its repeats
  int most_busy_copies = 64;  // upper limit of copies before the timed work
  int marks = 100;            // marks from which a mark's own time is measured
};

/// A device with the clock, monitor and sizes that its measurements share. Used from the device's
/// thread only.
class Bench {
 public:
  /// Device, clock and monitor must outlive the bench. Errors  no room for the busy copies:
  /// RunFailure
  Bench(executor::Device& device, Clock& clock, ClockMonitor& monitor, const BenchSizes& sizes);
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  executor::Device& device() const { return device_; }
  Clock& clock() const { return clock_; }
  ClockMonitor& monitor() const { return monitor_; }
  const BenchSizes& sizes() const { return sizes_; }
  /// Time that a mark between two kernels takes; measured on first use.
  Time mark_cost();

  /// Keeps the compute queue busy for about `host`, while the host enqueues.
  void keep_busy(Time host);
  /// Time between two marks of one queue minus a mark's own time, at least a tenth of the raw time.
  Time between(executor::Mark from, executor::Mark to);
  /// Number of operand copies that work must cycle through to find none in a cache.
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
  DeviceMemory from_, to_;
  Time copy_{};
  std::optional<Time> mark_cost_;
};

/// Times pieces of work that follow each other on one queue.
class SegmentTimer {
 public:
  /// What counts on a device without queues: wall-clock time, or the thread's own CPU time if every
  /// rank has a core of its own.
  enum class Core : std::uint8_t { shared, own };

  /// host  estimated host time to enqueue all pieces
  SegmentTimer(Bench& bench, models::Lane queue, Time host, Core core = Core::shared);
  /// Ends the current piece and starts the next.
  void end_segment();
  /// Discards what was enqueued so far; the first piece starts here.
  void restart();
  /// Waits for the device, forgets its marks and returns one time for each piece.
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
  std::vector<executor::Mark> marks_;  // on a device with queues
  Look begin_{};                       // on one without
  std::vector<Time> times_;
};

}  // namespace orrery::calibrate
