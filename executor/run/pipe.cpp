#include "executor/run/pipe.hpp"

#include <algorithm>

#include "models/program/opcodes.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

using models::Lane;
using models::Token;

void Pipe::send(Token i) {
  const models::Channel& channel = rank_.program.channels[rank_.instruction(i).target];
  if (channel.from == channel.to) return send_local(i);
  const Group& pipe = rank_.calls.group(channel.communicator);
  PendingCall pending;
  pending.instruction = i;
  pending.peer = pipe.members[channel.to];
  pending.lane = Lane::compute;  // compute makes what is sent and reads what is received
  const std::size_t launch = rank_.recording.begin(i, pending.lane);  // not the wait
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
  if (models::receive_slot(rank_.program, each) == models::slot_delayed) {
    at = bound.delayed + rank_.plan.delayed_arrival(chunk, chunk.layers.size() - 1);
  }
  if (channel.from == channel.to) return receive_local(i, rank_.arena + at);
  PendingCall pending;
  pending.instruction = i;
  pending.peer = pipe.members[channel.from];
  pending.lane = Lane::compute;  // after the kernels that used the memory before
  pending.entry = rank_.recording.begin(i, pending.lane);
  pending.request = fabric_.receive({.group = pipe.id,
                                     .peer = static_cast<int>(channel.from),
                                     .buffer = rank_.arena + at,
                                     .bytes = channel.bytes.count(),
                                     .queue = pending.lane});
  arrivals_.push_back(pending);
}

void Pipe::send_local(Token i) {
  const std::size_t entry = rank_.recording.begin(i, Lane::compute);
  rank_.recording.end(entry, Lane::compute);
  local_sends_[rank_.instruction(i).target].push_back(i);
}

/// Copies the channel's oldest send that was not received yet. Its memory has not been bound again,
/// because sends keep theirs until they are received (send_depth.hpp).
void Pipe::receive_local(Token i, std::byte* to) {
  const std::uint32_t id = rank_.instruction(i).target;
  std::deque<Token>& handed = local_sends_[id];
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
