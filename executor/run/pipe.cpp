#include "executor/run/pipe.hpp"

#include <algorithm>

#include "models/program/opcodes.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

using models::Lane;
using models::Token;

void Pipe::send(Token i) {
  const models::Channel& channel = rank_.program.channels[rank_.instruction(i).target];
  if (channel.from == channel.to) return hand_over(i);
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
  const ChunkPlan& chunk = rank_.plan.chunk(each.chunk);
  std::int64_t at = channel.forward ? bound.saved + chunk.arrival : bound.in;
  if (models::arrival_of(rank_.program, each) == models::slot_delayed) {
    at = bound.delayed + rank_.plan.delayed_arrival(chunk, chunk.layers.size() - 1);
  }
  if (channel.from == channel.to) return take_over(i, rank_.arena + at);
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

void Pipe::hand_over(Token i) {
  const std::size_t entry = rank_.recording.begin(i, Lane::compute);
  rank_.recording.end(entry, Lane::compute);
  handed_[rank_.instruction(i).target].push_back(i);
}

/// The k-th that is taken is the k-th that was handed over. Its memory is not bound again before:
/// the channel's sends keep theirs until their receive (send_depth.hpp).
void Pipe::take_over(Token i, std::byte* to) {
  const std::uint32_t id = rank_.instruction(i).target;
  std::deque<Token>& handed = handed_[id];
  ensure(!handed.empty(), "a chunk takes what the one before has not made");
  const std::size_t entry = rank_.recording.begin(i, Lane::compute);
  rank_.device.copy(rank_.arena + rank_.plan.bound(handed.front()).out, to,
                    rank_.program.channels[id].bytes, Lane::compute);
  rank_.recording.end(entry, Lane::compute);
  handed.pop_front();
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
