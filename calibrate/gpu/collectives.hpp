#pragma once
// Collectives of several GPUs, timed by marks on the queue that they run on. All start together,
// behind one small collective; a time is that of the slowest rank.

#include <memory>
#include <vector>

#include "calibrate/bench/team.hpp"
#include "calibrate/harness/harness.hpp"
#include "executor/device/device.hpp"
#include "executor/fabric/fabric.hpp"

namespace orrery::calibrate {

/// One rank's. The fabric goes first.
struct GpuRank {
  std::unique_ptr<executor::Device> device;
  std::unique_ptr<executor::Fabric> fabric;
};

/// Ranks with a thread and a device each, and the group of all of them.
class GpuCrew {
 public:
  using Make = std::function<GpuRank(int rank, int ranks)>;
  /// `make` is called on each rank's thread. Errors  its own
  GpuCrew(int ranks, const Make& make);
  ~GpuCrew();

  Team team;
  std::vector<GpuRank> members;
  executor::GroupId group = 0;
};

/// Rounded up to whole elements for each rank.
Bytes cut_evenly(Bytes size, int ranks);

class QueueCollective : public Subject {
 public:
  /// size  as nccl-tests counts it, a multiple of 4 times the ranks
  QueueCollective(models::Collective kind, Bytes size, GpuCrew& crew);

  std::string name() const override;
  std::size_t parts() const override { return 1; }
  models::Collective kind() const { return kind_; }
  Bytes size() const { return size_; }
  /// Errors  a sum or an order that is wrong: RunFailure
  void prepare() override;
  bool run(std::vector<Time>& times) override;
  void finish() override;

  /// Enqueues one call, as one rank.
  void call(int rank, Bytes size);

 private:
  void check();

  models::Collective kind_;
  Bytes size_;
  GpuCrew& crew_;
  std::vector<std::byte*> from_, to_;  // by rank
};

}  // namespace orrery::calibrate
