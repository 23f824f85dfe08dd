#include "executor/run/pipe.hpp"

#include <algorithm>

namespace orrery::executor {

using models::Lane;
using models::Token;

void Pipe::send(Token i, std::byte* arena) {
  const models::Channel& channel = program_.channels[ranks_.instructions[i].target];
  const Group& pipe = groups_[channel.communicator];
  PendingCall pending;
  pending.instruction = i;
  pending.peer = pipe.members[channel.to];
  pending.lane = Lane::compute;  // no other has what is sent, or what is received
  const Mark start = recording_.instructions() ? device_.mark(pending.lane) : Mark{};
  pending.request = fabric_.send({.group = pipe.id,
                                  .peer = static_cast<int>(channel.to),
                                  .buffer = arena + plan_.bound(i).out,
                                  .bytes = channel.bytes.count(),
                                  .queue = pending.lane});
  if (recording_.instructions()) {
    const std::size_t entry = recording_.add(i, start);  // the launch: no wait
    recording_.end(entry, device_.mark(pending.lane));
  }
  sends_.push_back(pending);
}

void Pipe::receive(Token i, std::byte* arena) {
  const models::Instruction& each = ranks_.instructions[i];
  const models::Channel& channel = program_.channels[each.target];
  const Group& pipe = groups_[channel.communicator];
  const Bound& bound = plan_.bound(i);
  const std::int64_t at =
      channel.forward ? bound.saved + plan_.chunk(each.chunk).arrival : bound.in;
  PendingCall pending;
  pending.instruction = i;
  pending.peer = pipe.members[channel.from];
  pending.lane = Lane::compute;  // what used the memory before has ended
  if (recording_.instructions()) pending.entry = recording_.add(i, device_.mark(pending.lane));
  pending.request = fabric_.receive({.group = pipe.id,
                                     .peer = static_cast<int>(channel.from),
                                     .buffer = arena + at,
                                     .bytes = channel.bytes.count(),
                                     .queue = pending.lane});
  arrivals_.push_back(pending);
}

void Pipe::before_binding(Token i) {
  const auto& reuses = plan_.reuses();
  for (; next_reuse_ < reuses.size() && reuses[next_reuse_].instruction == i; ++next_reuse_) {
    const auto sent = std::find_if(sends_.begin(), sends_.end(), [&](const PendingCall& each) {
      return each.instruction == reuses[next_reuse_].send;
    });
    if (sent == sends_.end()) continue;
    calls_.wait(*sent);
    sends_.erase(sent);
  }
}

void Pipe::wait_for_sends() {
  for (PendingCall& each : sends_) calls_.wait(each);
  sends_.clear();
}

void Pipe::wait_for_arrivals() {
  for (PendingCall& each : arrivals_) calls_.wait(each);
  arrivals_.clear();
}

}  // namespace orrery::executor
