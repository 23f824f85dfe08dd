#pragma once
// Timing on a device's queues: marks before, between and behind pieces of work, read when all of it
// has ended. The host must be ahead all along, or marks would show its own pace; so copies of
// memory run first, for as long as the host takes to enqueue the rest.
//
// A mark between two kernels takes time itself: how long is measured first and taken off.

#include <optional>
#include <string>
#include <vector>

#include "calibrate/gpu/telemetry.hpp"
#include "calibrate/harness/harness.hpp"
#include "executor/device/device.hpp"

namespace orrery::calibrate {

/// How large what surrounds the timed work is; a test's is small.
struct BenchSizes {
  Bytes run_up = 256_MiB;  // of one copy before the timed work
  Bytes cold = 128_MiB;    // operands that work goes around in: beyond any cache
  Time interval = 200_us;  // that a repeated piece of work should fill
  int most_repeats = 64;   // ... and how often it may be
  int most_run_ups = 64;   // copies
  int marks = 100;         // that a mark's own time is found from
};

/// A device and what its points share. One thread, the device's.
class QueueBench {
 public:
  /// All outlive the bench. Measures copies and marks. Errors  no room: RunFailure
  QueueBench(executor::Device& device, Clock& clock, Overseer& overseer, const BenchSizes& sizes);
  ~QueueBench();
  QueueBench(const QueueBench&) = delete;
  QueueBench& operator=(const QueueBench&) = delete;

  executor::Device& device() const { return device_; }
  Clock& clock() const { return clock_; }
  Overseer& overseer() const { return overseer_; }
  const BenchSizes& sizes() const { return sizes_; }
  Time mark_cost() const { return mark_cost_; }

  /// Keeps the compute queue busy for about that long, while the host enqueues.
  void run_up(Time host);
  /// Between two marks of one queue, a mark's own time taken off, but a tenth left at the least.
  Time between(executor::Mark from, executor::Mark to) const;
  /// As many copies of operands as work must go around in to find none in a cache.
  int copies_of(Bytes footprint) const;

 private:
  Time time_copy();
  Time time_marks();

  executor::Device& device_;
  Clock& clock_;
  Overseer& overseer_;
  BenchSizes sizes_;
  std::byte* from_ = nullptr;
  std::byte* to_ = nullptr;
  Time copy_{}, mark_cost_{};
};

/// Work on the compute queue, timed by marks.
class QueueSubject : public Subject {
 public:
  explicit QueueSubject(QueueBench& bench) : bench_{bench} {}

  void prepare() final;
  /// false: the GPU was throttled
  bool run(std::vector<Time>& times) final;
  void finish() final;

  /// How the GPU was while this was measured.
  const Conditions& conditions() const { return conditions_; }
  /// The host's time to enqueue one run, the last one.
  Time host_time() const { return host_time_; }

 protected:
  QueueBench& bench() const { return bench_; }
  /// Takes memory, computes once and compares. May choose how often `enqueue` repeats.
  virtual void set_up() = 0;
  /// Enqueues each part, and a mark behind it.
  virtual void enqueue(std::vector<executor::Mark>& marks) = 0;
  virtual void tear_down() noexcept = 0;
  /// How often part p is there between its marks.
  virtual int repeats(std::size_t /*part*/) const { return 1; }

 private:
  QueueBench& bench_;
  Conditions conditions_;
  Time host_time_{};
};

}  // namespace orrery::calibrate
