#include "executor/run/pipe.hpp"

#include <algorithm>

#include "models/program/opcodes.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

using models::Lane;
using models::Token;

PendingCall Pipe::transfer(TransferEnd end, Token i, std::int64_t at, std::size_t entry) {
  const models::Channel& channel = rank_.program.channels[rank_.instruction(i).target];
  const auto peer = static_cast<int>(end == TransferEnd::sends ? channel.to : channel.from);
  PendingCall pending;
  pending.instruction = i;
  pending.communicator = channel.communicator;
  pending.entry = entry;
  rank_.calls.transfer(end, rank_.arena + at, channel.bytes, peer, pending);
  return pending;
}

void Pipe::send(Token i) {
  const models::Channel& channel = rank_.program.channels[rank_.instruction(i).target];
  if (channel.from == channel.to) return send_local(i);
  const std::size_t launch = rank_.recording.begin(i, Lane::compute);  // not the wait
  sends_.push_back(transfer(TransferEnd::sends, i, rank_.plan.bound(i).out, not_recorded));
  rank_.recording.end(launch, Lane::compute);
}

void Pipe::receive(Token i) {
  const models::Instruction& each = rank_.instruction(i);
  const models::Channel& channel = rank_.program.channels[each.target];
  const Bound& bound = rank_.plan.bound(i);
  const ChunkPlan& chunk = rank_.plan.chunk(each.chunk);
  std::int64_t at = channel.forward ? bound.saved + chunk.arrival : bound.in;
  if (models::receive_slot(rank_.program, each) == models::slot_delayed) {
    at = bound.delayed + rank_.plan.delayed_arrival(chunk, chunk.layers.size() - 1);
  }
  if (channel.from == channel.to) return receive_local(i, rank_.arena + at);
  const std::size_t entry = rank_.recording.begin(i, Lane::compute);
  arrivals_.push_back(transfer(TransferEnd::receives, i, at, entry));
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
