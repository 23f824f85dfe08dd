#pragma once
// What a collective costs the host that starts it: many small ones, one behind the other, by every
// rank at once. What they cost the queues is calibrate/gpu/collectives.hpp's.

#include "calibrate/gpu/collectives.hpp"

namespace orrery::calibrate {

/// One part: the host's time of one small all-reduce as the executor starts it, events and all; of
/// the slowest rank.
class CommunicationLaunch : public Subject {
 public:
  /// Both outlive it. A crew of one measures a communicator of one rank: nothing is exchanged, so
  /// it is the least that a collective costs.
  CommunicationLaunch(GpuCrew& crew, Clock& clock);

  std::string name() const override;
  std::size_t parts() const override { return 1; }
  Bytes size() const { return collective_.size(); }
  void prepare() override { collective_.prepare(); }
  bool run(std::vector<Time>& times) override;
  void finish() override { collective_.finish(); }

 private:
  GpuCrew& crew_;
  Clock& clock_;
  QueueCollective collective_;
};

}  // namespace orrery::calibrate
