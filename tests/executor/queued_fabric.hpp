#pragma once
// A fabric on a device's queues, with NCCL's manners: collectives run on the call's queue,
// transfers each way on a lane of their own, and a send stays there until it is taken. What is
// carried, threads carry.

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "executor/fabric/threads/thread_fabric.hpp"
#include "tests/executor/queued_device.hpp"

namespace orrery::executor {

class QueuedFabric final : public Fabric {
 public:
  QueuedFabric(ThreadWorld& world, int rank, QueuedDevice& device);
  ~QueuedFabric() override;

  std::string_view name() const override { return "queued"; }
  int rank() const override { return rank_; }
  int ranks() const override { return world_.ranks(); }
  GroupId make_group(std::span<const int> members) override;
  Request start(const CollectiveCall& call) override;
  Request transfer(const TransferCall& call, TransferEnd end) override;
  bool test(Request request) override;
  void wait(Request request) override;
  void abort(std::string_view why) noexcept override { world_.abort(why); }

 private:
  struct Open {
    Mark done;
    models::Lane queue;
    bool transfer = false;
  };
  using Way = std::array<int, 3>;  // group, from, to

  Fabric& on_lane(std::size_t lane);
  Request keep(Open open);

  ThreadWorld& world_;
  int rank_;
  QueuedDevice& device_;
  std::vector<std::vector<int>> groups_;
  std::map<std::size_t, std::unique_ptr<Fabric>> fabrics_;  // each called by one lane's thread
  std::map<Way, std::size_t> ways_;
  std::map<std::uint64_t, Open> open_;
  std::uint64_t last_ = 0;
};

}  // namespace orrery::executor
