#pragma once
// Calls of the fabric on their way, and the waits for them. On a device that does not run in step
// with the host the waits are marks on its lanes: who calls the fabric waits for the compute lane
// first, and the compute lane goes on after the one call that it needs.

#include <atomic>
#include <cstdint>
#include <vector>

#include "executor/device/device.hpp"
#include "executor/fabric/fabric.hpp"
#include "executor/run/groups.hpp"
#include "executor/run/recording.hpp"
#include "models/program/program.hpp"

namespace orrery::executor {

/// Something on its way: a request, and its entry in the recording.
struct PendingCall {
  Request request;
  std::size_t entry = not_recorded;
  models::Token instruction = 0;
  int peer = -1;                   // of a transfer; -1: a collective of
  std::uint16_t communicator = 0;  // this one
  models::Lane lane = models::Lane::data;
  Mark done;                    // of a collective: its end on its lane
  std::size_t operation = 0;    // of the block
  std::byte* filled = nullptr;  // the bucket that it empties (sharded gradients)
};

/// Where a rank is in its step, safe to read from another thread.
struct StepPosition {
  std::atomic<std::int64_t> step{0};
  std::atomic<std::size_t> instruction{0};
  std::atomic<int> peer{-1};          // that it waits for
  std::atomic<int> communicator{-1};  // ... or all of this one
};

class Calls {
 public:
  Calls(Device& device, Fabric& fabric, const std::vector<Group>& groups, Arithmetic arithmetic,
        Recording& recording, StepPosition& position)
      : device_{device},
        fabric_{fabric},
        groups_{groups},
        arithmetic_{arithmetic},
        recording_{recording},
        position_{position} {}

  const Group& group(std::uint16_t communicator) const { return groups_[communicator]; }
  /// What the fabric adds or copies of numbers in this format.
  Element element(models::DType type) const;

  /// What the other ranks are given has been computed, and what is overwritten has been read.
  void before(models::Lane lane);
  /// Starts a collective of the communicator that `pending` names, on the lane that it names: its
  /// end is a place on that lane, whatever follows there.
  void start(CollectiveCall call, PendingCall& pending);
  /// The same of a transfer to or from a member of that communicator, which compute comes before.
  void send(const std::byte* from, Bytes size, int to, PendingCall& pending);
  void receive(std::byte* to, Bytes size, int from, PendingCall& pending);
  /// Has it ended? Fabrics that cannot progress by themselves do so here.
  bool ended(const PendingCall& pending);
  /// The host waits where the fabric needs it; the compute lane goes on after the call.
  void wait(PendingCall& pending);
  void wait_for_all(std::vector<PendingCall>& pending);

 private:
  Device& device_;
  Fabric& fabric_;
  const std::vector<Group>& groups_;
  Arithmetic arithmetic_;
  Recording& recording_;
  StepPosition& position_;
};

}  // namespace orrery::executor
