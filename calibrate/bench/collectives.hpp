#pragma once
// Times collectives and point-to-point messages of a fabric, on all ranks concurrently. A time is
// that of the slowest rank, from when all are ready: what a plan waits for.

#include <string>
#include <vector>

#include "calibrate/bench/rank_set.hpp"

namespace orrery::calibrate {

/// The size rounded up to whole fp32 elements for each rank.
Bytes cut_evenly(Bytes size, int ranks);

/// One collective of all ranks, fp32, in the devices' memory. One part.
class CollectiveSubject : public TimedSubject {
 public:
  /// size  as nccl-tests counts it, a multiple of 4 bytes times the ranks
  CollectiveSubject(models::Collective kind, Bytes size, RankSet& ranks);

  std::string name() const override;
  std::size_t parts() const override { return 1; }
  models::Collective kind() const { return kind_; }
  Bytes size() const { return size_; }

  /// Called by each rank: starts one call and, on a device without queues, waits for its end.
  void call(int rank, Bytes size);

 private:
  /// Errors  a sum or an order that is wrong: RunFailure
  void set_up() override;
  void enqueue(int rank, SegmentTimer& timer) override;
  void tear_down() noexcept override;
  void check();

  models::Collective kind_;
  Bytes size_;
  std::vector<DeviceMemory> from_, to_;  // by rank
};

/// Host time to launch a collective: every rank launches many small ones one after another. One
/// part: the time of one small all-reduce on the slowest rank's host. A set of one rank measures a
/// communicator of one rank, which moves no data, so the time is a lower bound.
class CommunicationLaunch : public Subject {
 public:
  CommunicationLaunch(RankSet& ranks, Clock& clock);

  std::string name() const override;
  std::size_t parts() const override { return 1; }
  Bytes size() const { return collective_.size(); }
  void prepare() override { collective_.prepare(); }
  bool run(std::vector<Time>& times) override;
  void finish() override { collective_.finish(); }

 private:
  RankSet& ranks_;
  Clock& clock_;
  CollectiveSubject collective_;
};

}  // namespace orrery::calibrate
