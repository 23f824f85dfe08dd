#include "executor/run/reducer/fabric_calls.hpp"

namespace orrery::executor {

using models::DType;
using models::Lane;

Element FabricCalls::element(DType type) const {
  if (arithmetic_ == Arithmetic::ring) return Element::ring;
  switch (type) {
    case DType::fp16:
      return Element::fp16;
    case DType::bf16:
      return Element::bf16;
    case DType::fp64:
      return Element::fp64;
    case DType::fp32:
    case DType::tf32:
      return Element::fp32;
    default:
      return Element::byte;
  }
}

void FabricCalls::before(Lane lane) {
  if (!device_.synchronous()) device_.wait(lane, device_.mark(Lane::compute));
}

void FabricCalls::start(CollectiveCall call, PendingCall& pending) {
  call.group = group(pending.communicator).id;
  call.queue = pending.lane;
  pending.request = fabric_.start(call);
  if (device_.synchronous()) return;
  pending.done = device_.mark(pending.lane);
  recording_.end(pending.entry, pending.done);
}

void FabricCalls::transfer(TransferEnd end, std::byte* buffer, Bytes size, int peer,
                           PendingCall& pending) {
  const Group& among = group(pending.communicator);
  pending.peer = among.members[static_cast<std::size_t>(peer)];
  pending.lane = Lane::compute;
  pending.request = fabric_.transfer({.group = among.id,
                                      .peer = peer,
                                      .buffer = buffer,
                                      .bytes = size.count(),
                                      .queue = pending.lane},
                                     end);
}

void FabricCalls::wait(PendingCall& pending) {
  const bool transfer = pending.peer >= 0;
  position_.peer.store(pending.peer, std::memory_order_relaxed);
  position_.communicator.store(transfer ? -1 : pending.communicator, std::memory_order_relaxed);
  fabric_.wait(pending.request);
  position_.peer.store(-1, std::memory_order_relaxed);
  position_.communicator.store(-1, std::memory_order_relaxed);
  if (!device_.synchronous() && !transfer) {
    device_.wait(Lane::compute, pending.done);
  } else {
    recording_.end(pending.entry, pending.lane);
  }
}

void FabricCalls::wait_for_all(std::vector<PendingCall>& pending) {
  for (PendingCall& each : pending) wait(each);
  pending.clear();
}

}  // namespace orrery::executor
