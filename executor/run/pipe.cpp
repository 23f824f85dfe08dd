#include "executor/run/pipe.hpp"

#include <algorithm>

namespace orrery::executor {

using models::Lane;
using models::Token;

void Pipe::send(Token i) {
  const models::Channel& channel = rank_.program.channels[rank_.instruction(i).target];
  const Group& pipe = rank_.calls.group(channel.communicator);
  PendingCall pending;
  pending.instruction = i;
  pending.peer = pipe.members[channel.to];
  pending.lane = Lane::compute;  // no other has what is sent, or what is received
  const std::size_t launch = rank_.recording.begin(i, pending.lane);  // no wait
  pending.request = fabric_.send({.group = pipe.id,
                                  .peer = static_cast<int>(channel.to),
                                  .buffer = rank_.arena + rank_.plan.bound(i).out,
                                  .bytes = channel.bytes.count(),
                                  .queue = pending.lane});
  rank_.recording.end(launch, pending.lane);
  sends_.push_back(pending);
}

void Pipe::receive(Token i) {
  const models::Instruction& each = rank_.instruction(i);
  const models::Channel& channel = rank_.program.channels[each.target];
  const Group& pipe = rank_.calls.group(channel.communicator);
  const Bound& bound = rank_.plan.bound(i);
  const std::int64_t at =
      channel.forward ? bound.saved + rank_.plan.chunk(each.chunk).arrival : bound.in;
  PendingCall pending;
  pending.instruction = i;
  pending.peer = pipe.members[channel.from];
  pending.lane = Lane::compute;  // what used the memory before has ended
  pending.entry = rank_.recording.begin(i, pending.lane);
  pending.request = fabric_.receive({.group = pipe.id,
                                     .peer = static_cast<int>(channel.from),
                                     .buffer = rank_.arena + at,
                                     .bytes = channel.bytes.count(),
                                     .queue = pending.lane});
  arrivals_.push_back(pending);
}

void Pipe::before_binding(Token i) {
  const auto& reuses = rank_.plan.reuses();
  for (; next_reuse_ < reuses.size() && reuses[next_reuse_].instruction == i; ++next_reuse_) {
    const auto sent = std::find_if(sends_.begin(), sends_.end(), [&](const PendingCall& each) {
      return each.instruction == reuses[next_reuse_].send;
    });
    if (sent == sends_.end()) continue;
    rank_.calls.wait(*sent);
    sends_.erase(sent);
  }
}

}  // namespace orrery::executor
