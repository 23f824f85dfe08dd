#pragma once
// State of an evaluation with traffic: its ranks, channels and groups.

#include <cstdint>
#include <vector>

#include "models/evaluation/chain.hpp"
#include "models/evaluation/chain_times.hpp"
#include "models/evaluation/step_times.hpp"
#include "models/evaluation/traffic/traffic.hpp"
#include "models/program/walk.hpp"

namespace orrery::models::traffic {

inline constexpr std::int64_t unknown = -1;  // an end that is not known yet

inline constexpr std::int64_t infinite = std::int64_t{1} << 58;  // of what waits for one

/// A phase that is evaluated operation by operation, because other ranks or shared links determine
/// when collectives in it end. Times that depend on an unknown end are infinite; other operations
/// proceed.
struct InsideRun {
  struct Meeting {
    bool announced = false;
    std::int64_t start = unknown, end = unknown;
  };
  bool active = false, begun = false;  // the phase has begun; its current block has begun
  Token awaits = no_token;             // token before its first kernel, until that has ended
  std::size_t invocation = 0;          // of the phase
  std::int64_t repeat = 0;
  std::size_t at = 0;  // first operation of the block whose end is not known
  std::vector<NumberTime> ends;
  NumberTime output;
  std::vector<Meeting> meetings;  // by operation
  std::int64_t host = unknown;    // when the host leaves the phase, whose last ends may be unknown
};

/// The collective inside a block that a group is running.
struct BlockCollectiveTrack {
  std::size_t arrived = 0, operation = 0;
  std::uint64_t run = 0;  // how many have begun in this step
  std::int64_t start = 0;
};

/// A rank's instruction list, and how far its host is in it and, after the host, its kernels.
struct RankTrack {
  const std::vector<Instruction>* list = nullptr;
  std::size_t speed = 0;  // index of its speed in PhaseRunner
  bool alone = true;      // its phases run without other members of its tensor group
  Token host_at = 0, device_at = 0;
  bool launched = false;  // the instruction at host_at is launched; the host waits for its end
  std::int64_t host = 0;
  Chain<NumberTime> state{};  // lane times after the instructions before device_at
  Token first = 0;            // the first instruction whose Note is kept
  struct Note {
    std::int64_t launch = 0;  // the host's time when it launches the instruction
    InstructionTimes made{unknown, unknown};
    std::uint32_t send = 0;  // the last of `sends` that waits for it, from 1; 0: none
  };
  std::vector<Note> notes;
  std::int64_t data_free = 0;
  std::vector<Token> joints;  // launched joint collectives
  std::size_t joint_at = 0;   // which of them is next on comm:dp
  bool announced = false;     // this rank has arrived at it
  std::vector<Time> ready;    // when the rank was ready for each joint collective
  struct Send {
    Token at;
    std::uint32_t channel;
    std::size_t k;
    std::uint32_t next;  // the next send that waits for the same input, from 1; 0: none
  };
  std::vector<Send> sends;  // those launched before their input was made
  InsideRun inside;
  InsideTimes inside_times;
  bool queued = false, finished = false;

  Note& note(Token i) { return notes[i - first]; }
  const Note& note(Token i) const { return notes[i - first]; }
  bool known(Token i) const { return i == no_token || note(i).made.end != unknown; }
  InstructionTimes made(Token i) const {
    return i == no_token ? InstructionTimes{0, 0} : note(i).made;
  }
  bool reached(Token i) const { return host_at > i || (host_at == i && launched); }
};

/// Transfers of one channel in order; the first ones may be in another track, `before`.
struct ChannelTrack {
  const ChannelTrack* before = nullptr;
  std::size_t first = 0;             // number of this track's first transfer
  std::vector<std::int64_t> ready;   // by send: when it is ready
  std::vector<std::int64_t> posted;  // by receive: when it is launched
  std::vector<Token> receives;
  std::vector<Time> starts, ends;
  bool busy = false;
  std::int64_t free = 0;

  /// One of the lists of times above, with the transfers in `before`.
  std::vector<Time> all(std::vector<Time> ChannelTrack::*times) const {
    std::vector<Time> found;
    if (before != nullptr) {
      found = before->all(times);
      found.resize(first);
    }
    found.insert(found.end(), (this->*times).begin(), (this->*times).end());
    return found;
  }
  /// A track that continues `track`.
  static ChannelTrack after(const ChannelTrack& track);
};

/// A joint collective of one group.
struct JointTrack {
  std::size_t arrived = 0;
  std::int64_t start = 0, end = unknown;
};

}  // namespace orrery::models::traffic
