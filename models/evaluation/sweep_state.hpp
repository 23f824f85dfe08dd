#pragma once
// What a sweep keeps: of each rank class how far it is, what it made and when its lanes are free;
// of channels and joint collectives what has been reached.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/evaluation/chain_times.hpp"
#include "models/evaluation/priced.hpp"
#include "models/evaluation/step_times.hpp"
#include "models/program/opcodes.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

struct SweepState {
  struct Rank {
    Chain<NumberTime> state{};
    std::uint32_t at = 0;
    bool announced = false;  // at a joint collective that waits for others
    // By instruction. Apart from each other: read and written together as one wide number right
    // after narrow stores, they would stall.
    std::int64_t* outputs = nullptr;
    std::int64_t* ends = nullptr;
    std::vector<Time> collectives_ready;

    std::int64_t& host() { return state[state_host].value; }
    std::int64_t& compute() { return state[state_compute].value; }
    void wait_host(std::int64_t end) { host() = std::max(host(), end); }
  };
  struct ChannelState {
    std::vector<Time> ends;    // of transfers, in order; of those not received yet, when ready
    std::size_t received = 0;  // so far
    bool awaited = false;      // the receiver is parked here
  };
  struct Joint {
    std::size_t arrived = 0;
    std::int64_t start = 0;
    bool done = false;
  };

  /// Of a stage's instructions, one in so many is a send on either of its channels.
  static constexpr std::size_t usual_share = 5;
  static constexpr std::size_t usual_window = 16;  // instructions, a power of two

  explicit SweepState(const PricedProgram& of) : priced{of}, program{*of.program} {}

  /// Forgets all of an earlier run. `instructions`, a power of two: how many of a rank's last ones
  /// are kept.
  void begin(std::size_t instructions) {
    too_far = false;
    window = instructions;
    kept.assign(2 * window * program.classes.size(), 0);
    ranks.assign(program.classes.size(), {});
    for (std::uint32_t c = 0; c < ranks.size(); ++c) {
      ranks[c].outputs = kept.data() + 2 * window * c;
      ranks[c].ends = ranks[c].outputs + window;
      ranks[c].state[state_host].value = priced.step_launch.count();
      ranks[c].state[state_data].value = priced.carried_by(c).count();
    }
    joints.assign(program.collectives.size(), {});
    channels.assign(program.channels.size(), {});
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const std::uint32_t from = program.channels[c].from;
      channels[c].ends.reserve(program.classes[from].instructions.size() / usual_share);
    }
    runnable.clear();
  }

  std::size_t longest_list() const {
    std::size_t longest = 1;
    for (const RankClass& each : program.classes) {
      longest = std::max(longest, each.instructions.size());
    }
    return longest;
  }

  Made made(std::uint32_t c, const Rank& rank, Token token) {
    if (token == no_token) return {0, 0};
    const std::size_t place = token & (window - 1);
    const Token age = rank.at - token - 1;
    return age < window - 1 ? Made{rank.outputs[place], rank.ends[place]}
                            : made_long_ago(c, rank, token);
  }
  /// A token stands for what is earlier in the list; nothing is waited for without one.
  [[gnu::noinline]] Made made_long_ago(std::uint32_t c, const Rank& rank, Token token) {
    ensure(token < rank.at, "an instruction awaits what is not earlier in its list");
    const Instruction& maker = program.classes[c].instructions[token];
    too_far = too_far || !is_joint(maker);
    if (too_far) return {0, 0};
    const std::int64_t end =
        joints[maker.target].start + priced.collectives[maker.target].duration.count();
    return {end, end};
  }
  void make(Rank& rank, Token i, Made made) const {
    rank.outputs[i & (window - 1)] = made.output;
    rank.ends[i & (window - 1)] = made.end;
  }

  /// Every class that still has instructions, and the one that it waits at.
  ContractError stuck() const;

  /// What is kept of a whole step.
  StepTimes result() {
    StepTimes times;
    for (Rank& rank : ranks) {
      times.collectives_ready.push_back(std::move(rank.collectives_ready));
      times.ranks.push_back(queue_times(rank.state));
    }
    for (ChannelState& channel : channels) {
      channel.ends.resize(channel.received);
      times.transfers.push_back(std::move(channel.ends));
    }
    times.step = std::max(times.scheduled(), priced.bound.time);
    for (const Joint& joint : joints) times.collective_starts.push_back(Time{joint.start});
    return times;
  }

  const PricedProgram& priced;
  const Program& program;
  std::vector<Rank> ranks;
  std::vector<std::int64_t> kept;  // of what the last instructions of each rank made
  std::size_t window = 0;          // how many of them
  bool too_far = false;            // one was awaited that is not kept
  std::vector<ChannelState> channels;
  std::vector<Joint> joints;
  std::vector<std::uint32_t> runnable;
};

}  // namespace orrery::models
