#include "executor/run/calls.hpp"

namespace orrery::executor {

using models::Lane;

void Calls::before(Lane lane) {
  if (!device_.synchronous()) device_.wait(lane, device_.mark(Lane::compute));
}

void Calls::begun(PendingCall& pending) {
  if (device_.synchronous()) return;
  pending.done = device_.mark(pending.lane);
  if (pending.entry != not_recorded) recording_.end(pending.entry, pending.done);
}

void Calls::wait(PendingCall& pending) {
  const bool transfer = pending.peer >= 0;
  position_.peer.store(pending.peer, std::memory_order_relaxed);
  position_.communicator.store(transfer ? -1 : pending.communicator, std::memory_order_relaxed);
  fabric_.wait(pending.request);
  position_.peer.store(-1, std::memory_order_relaxed);
  position_.communicator.store(-1, std::memory_order_relaxed);
  if (!device_.synchronous() && !transfer) {
    device_.wait(Lane::compute, pending.done);
  } else if (pending.entry != not_recorded && recording_.instructions()) {
    recording_.end(pending.entry, device_.mark(pending.lane));
  }
}

}  // namespace orrery::executor
