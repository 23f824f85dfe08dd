#pragma once
// Ranks of one process that are measured together, each with a thread, a device and, where they
// communicate, a fabric; and subjects that all of them run concurrently.

#include <functional>
#include <memory>
#include <vector>

#include "calibrate/bench/bench.hpp"
#include "calibrate/bench/concurrent_ranks.hpp"
#include "executor/fabric/fabric.hpp"

namespace orrery::calibrate {

/// The parts of one rank. The fabric is destroyed first; it is null if the rank does not
/// communicate.
struct RankParts {
  std::unique_ptr<executor::Device> device;
  std::unique_ptr<executor::Fabric> fabric{};
};

/// What all benches of a campaign share; must outlive them.
struct BenchTools {
  Clock& clock;
  ClockMonitor& monitor;
  BenchSizes sizes;
};

/// The ranks, and the group of all of them.
class RankSet {
 public:
  using Make = std::function<RankParts(int rank, int ranks)>;
  /// `make` is called on each rank's thread. Errors  those of `make`
  RankSet(int ranks, const Make& make, const BenchTools& tools);
  ~RankSet();

  int ranks() const { return threads.ranks(); }
  executor::Device& device(int rank) const {
    return *members_[static_cast<std::size_t>(rank)].device;
  }
  executor::Fabric& fabric(int rank) const {
    return *members_[static_cast<std::size_t>(rank)].fabric;
  }
  Bench& bench(int rank) const { return *benches_[static_cast<std::size_t>(rank)]; }
  executor::GroupId group() const { return group_; }
  /// `own` if this machine has a core for every rank.
  SegmentTimer::Core core() const { return core_; }

  ConcurrentRanks threads;
  Barrier barrier;

 private:
  std::vector<RankParts> members_;
  std::vector<std::unique_ptr<Bench>> benches_;
  executor::GroupId group_ = 0;
  SegmentTimer::Core core_;
};

/// Work that all ranks of a set run concurrently, timed part by part.
class TimedSubject : public Subject {
 public:
  /// How the ranks' times of a part are combined.
  enum class Over : std::uint8_t { mean, slowest };

  TimedSubject(RankSet& ranks, models::Lane queue, Over over)
      : ranks_{ranks},
        queue_{queue},
        over_{over},
        host_times_(static_cast<std::size_t>(ranks.ranks())) {}

  void prepare() final;
  /// Returns false if the GPU was throttled.
  bool run(std::vector<Time>& times) final;
  void finish() final;

  /// The GPU's clocks and power while this was measured.
  const Conditions& conditions() const { return conditions_; }

 protected:
  RankSet& ranks() const { return ranks_; }
  int repeats() const { return repeats_; }
  /// Allocates memory, runs once and checks the result. Runs on the caller's thread.
  virtual void set_up() = 0;
  /// Called by each rank: enqueues each part `repeats()` times, and ends each with `end_segment`.
  virtual void enqueue(int rank, SegmentTimer& timer) = 0;
  virtual void tear_down() noexcept = 0;
  /// False for work that runs once instead of being repeated to fill an interval.
  virtual bool repeated() const { return true; }

 private:
  RankSet& ranks_;
  models::Lane queue_;
  Over over_;
  Conditions conditions_;
  std::vector<Time> host_times_;  // of the last run, by rank
  int repeats_ = 1;
};

}  // namespace orrery::calibrate
