#pragma once
// Pipeline transfers to and from the neighbouring stages. The next phase waits for a receive; a
// send is waited for when its memory is bound again. Between two chunks of one stage a transfer is
// a copy.

#include <cstddef>
#include <deque>
#include <map>
#include <vector>

#include "executor/run/rank_context.hpp"

namespace orrery::executor {

/// Sends and receives of one rank.
class Pipe {
 public:
  explicit Pipe(const RankContext& rank) : rank_{rank} {}

  /// Start the transfer of a send or receive instruction, from or to a buffer of the arena.
  void send(models::Token i);
  void receive(models::Token i);

  void begin_step() {
    next_reuse_ = 0;
    local_sends_.clear();
  }
  /// Waits for the sends that still read the memory which instruction `i` binds.
  void before_binding(models::Token i);
  void wait_for_sends() { rank_.calls.wait_for_all(sends_); }
  void wait_for_arrivals() { rank_.calls.wait_for_all(arrivals_); }

 private:
  /// Starts a transfer with the neighbour, on the compute lane, which makes what is sent and used
  /// the memory of what is received.
  PendingCall transfer(TransferEnd end, models::Token i, std::int64_t at, std::size_t entry);
  void send_local(models::Token i);
  void receive_local(models::Token i, std::byte* to);

  const RankContext& rank_;
  std::vector<PendingCall> sends_, arrivals_;
  std::map<std::uint32_t, std::deque<models::Token>> local_sends_;  // sends to itself, by channel
  std::size_t next_reuse_ = 0;
};

}  // namespace orrery::executor
