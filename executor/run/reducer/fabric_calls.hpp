#pragma once
// Starts fabric calls and orders them against kernels. On an asynchronous device the order is kept
// by marks on its lanes, not by the host: the lane of a call first waits for the compute lane, and
// the compute lane later waits only for the call whose result it needs.

#include <atomic>
#include <cstdint>
#include <vector>

#include "executor/device/device.hpp"
#include "executor/fabric/fabric.hpp"
#include "executor/run/recording.hpp"
#include "executor/run/reducer/groups.hpp"
#include "models/program/program.hpp"

namespace orrery::executor {

/// A collective or transfer in flight: its request, and its entry in the recording.
struct PendingCall {
  Request request;
  std::size_t entry = not_recorded;
  models::Token instruction = 0;
  int peer = -1;                   // world rank at the other end of a transfer; -1: a collective
  std::uint16_t communicator = 0;  // index into Program::communicators
  models::Lane lane = models::Lane::data;
  Mark done;                    // end of a collective on its lane
  std::size_t operation = 0;    // index in its block
  std::byte* filled = nullptr;  // gradient bucket that it empties (ZeRO-2 and 3)
};

/// Where a rank is in its step, safe to read from another thread.
struct StepPosition {
  std::atomic<std::int64_t> step{0};
  std::atomic<std::size_t> instruction{0};
  std::atomic<int> peer{-1};          // rank that it waits for; -1: none
  std::atomic<int> communicator{-1};  // communicator that it waits for; -1: none
};

/// Starts and awaits the fabric calls of one rank.
class FabricCalls {
 public:
  FabricCalls(Device& device, Fabric& fabric, const std::vector<Group>& groups,
              Arithmetic arithmetic, Recording& recording, StepPosition& position)
      : device_{device},
        fabric_{fabric},
        groups_{groups},
        arithmetic_{arithmetic},
        recording_{recording},
        position_{position} {}

  const Group& group(std::uint16_t communicator) const { return groups_[communicator]; }
  /// The fabric's element type for numbers of this format; `byte` for those that are only copied.
  Element element(models::DType type) const;

  /// `lane` waits for the compute lane: what a call sends has been computed by then, and what it
  /// overwrites has been read.
  void before(models::Lane lane);
  /// Starts a collective on the communicator and lane that `pending` names, and marks its end on
  /// that lane, so that a later wait does not depend on what follows there.
  void start(CollectiveCall call, PendingCall& pending);
  /// Starts a transfer to or from `peer`, a member (an index) of that communicator, after the
  /// kernels enqueued on the compute lane so far.
  void transfer(TransferEnd end, std::byte* buffer, Bytes size, int peer, PendingCall& pending);
  /// Has the call ended? Fabrics that cannot progress by themselves do so here. Always false on an
  /// asynchronous device.
  bool ended(const PendingCall& pending) {
    return device_.synchronous() && fabric_.test(pending.request);
  }
  /// The host waits where the fabric needs it; the compute lane waits for the end of the call.
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
