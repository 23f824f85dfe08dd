#pragma once
// Ranks of one process that are measured together, each with a thread, a device and, where they
// communicate, a fabric; and subjects that all of them run at once.

#include <functional>
#include <memory>
#include <vector>

#include "calibrate/bench/bench.hpp"
#include "calibrate/bench/team.hpp"
#include "executor/fabric/fabric.hpp"

namespace orrery::calibrate {

/// One rank's. The fabric goes first; without one there is nothing to communicate with.
struct RankParts {
  std::unique_ptr<executor::Device> device;
  std::unique_ptr<executor::Fabric> fabric{};
};

/// What all benches of a campaign have in common; outlives them.
struct BenchTools {
  Clock& clock;
  ClockMonitor& monitor;
  BenchSizes sizes;
};

/// The ranks, and the group of all of them.
class RankSet {
 public:
  using Make = std::function<RankParts(int rank, int ranks)>;
  /// `make` is called on each rank's thread. Errors  its own
  RankSet(int ranks, const Make& make, const BenchTools& tools);
  ~RankSet();

  int ranks() const { return team.ranks(); }
  executor::Device& device(int rank) const {
    return *members_[static_cast<std::size_t>(rank)].device;
  }
  executor::Fabric& fabric(int rank) const {
    return *members_[static_cast<std::size_t>(rank)].fabric;
  }
  Bench& bench(int rank) const { return *benches_[static_cast<std::size_t>(rank)]; }
  executor::GroupId group() const { return group_; }
  /// Is there a core of this machine for every rank?
  Laps::Core core() const { return core_; }

  Team team;
  Gate gate;

 private:
  std::vector<RankParts> members_;
  std::vector<std::unique_ptr<Bench>> benches_;
  executor::GroupId group_ = 0;
  Laps::Core core_;
};

/// Work that all ranks of a set run at once, timed piece by piece.
class TimedSubject : public Subject {
 public:
  /// What a part's time is where several ranks have one each.
  enum class Over : std::uint8_t { mean, slowest };

  TimedSubject(RankSet& ranks, models::Lane queue, Over over)
      : ranks_{ranks},
        queue_{queue},
        over_{over},
        host_times_(static_cast<std::size_t>(ranks.ranks())) {}

  void prepare() final;
  /// false: the GPU was throttled
  bool run(std::vector<Time>& times) final;
  void finish() final;

  /// The GPU's clocks and power while this was measured.
  const Conditions& conditions() const { return conditions_; }

 protected:
  RankSet& ranks() const { return ranks_; }
  int repeats() const { return repeats_; }
  /// Takes memory, computes once and compares. Runs on the caller's thread.
  virtual void set_up() = 0;
  /// As one rank: enqueues each part `repeats()` times, and ends it with a lap.
  virtual void enqueue(int rank, Laps& laps) = 0;
  virtual void tear_down() noexcept = 0;
  /// Work that is not repeated to fill an interval runs once.
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
