#pragma once
// What a CUDA graph costs: a captured block of small operations, launched again and again. A launch
// of its operations one by one is LaunchSubject's (queue_work.hpp).

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/gpu/queue_work.hpp"
#include "executor/device/graphs.hpp"

namespace orrery::calibrate {

/// Parts are the host's time of one launch of the whole graph, and the queue's of one of its nodes
/// when the host is ahead.
class GraphLaunch : public Subject {
 public:
  /// The block is small, and has operations that the bench's device runs; the device has graphs.
  GraphLaunch(TimedBlock of, QueueBench& bench);

  std::string name() const override { return "graph of " + of_.name; }
  std::size_t parts() const override { return 2; }
  /// Known once it has run.
  std::int64_t nodes() const { return nodes_; }
  void prepare() override;
  bool run(std::vector<Time>& times) override;
  void finish() override;

 private:
  TimedBlock of_;
  QueueBench& bench_;
  executor::Graphs& graphs_;
  std::vector<const models::Operation*> operations_;
  std::unique_ptr<Operands> operands_;
  std::optional<executor::Graph> graph_;
  std::int64_t nodes_ = 0;
};

}  // namespace orrery::calibrate
