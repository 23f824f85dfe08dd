#pragma once
// State of a sweep: for each rank class its position in the list, the times of its last
// instructions and its lane times; for channels and joint collectives, how far they are.

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
    bool announced = false;  // it has arrived at a joint collective that waits for others
    // By instruction. Two arrays, not one of pairs: a wide load of a pair right after two narrow
    // stores would stall.
    std::int64_t* outputs = nullptr;
    std::int64_t* ends = nullptr;
    std::vector<Time> collectives_ready;

    std::int64_t& host() { return state[state_host].value; }
    std::int64_t& compute() { return state[state_compute].value; }
    void wait_host(std::int64_t end) { host() = std::max(host(), end); }
  };
  struct ChannelState {
    std::vector<Time>
        ends;  // of transfers, in order; of those not received yet, when the send is ready
    std::size_t received = 0;  // so far
    bool awaited = false;      // the receiver waits for the next send
  };
  struct Joint {
    std::size_t arrived = 0;
    std::int64_t start = 0;
    bool done = false;
  };

  /// About one in this many of a stage's instructions is a send on any one of its channels.
  static constexpr std::size_t usual_share = 5;
  static constexpr std::size_t usual_window = 16;  // instructions, a power of two

  explicit SweepState(const PricedProgram& of) : priced{of}, program{*of.program} {}

  /// Starts from scratch. `instructions`, a power of two: the number of a rank's last instructions
  /// whose times are kept.
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

  /// Times of an earlier instruction of this rank; 0 without a token.
  InstructionTimes made(std::uint32_t c, const Rank& rank, Token token) {
    if (token == no_token) return {0, 0};
    const std::size_t place = token & (window - 1);
    const Token age = rank.at - token - 1;
    return age < window - 1 ? InstructionTimes{rank.outputs[place], rank.ends[place]}
                            : made_long_ago(c, rank, token);
  }
  /// The same beyond the window: times of a joint collective are found again, for others `too_far`
  /// is set.
  [[gnu::noinline]] InstructionTimes made_long_ago(std::uint32_t c, const Rank& rank, Token token) {
    ensure(token < rank.at, "an instruction awaits what is not earlier in its list");
    const Instruction& maker = program.classes[c].instructions[token];
    too_far = too_far || !is_joint(maker);
    if (too_far) return {0, 0};
    const std::int64_t end =
        joints[maker.target].start + priced.collectives[maker.target].duration.count();
    return {end, end};
  }
  void make(Rank& rank, Token i, InstructionTimes made) const {
    rank.outputs[i & (window - 1)] = made.output;
    rank.ends[i & (window - 1)] = made.end;
  }

  /// Names every class that still has instructions, and the one at which it waits.
  ContractError stuck() const;

  /// The times of the whole step.
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
  std::vector<std::int64_t> kept;  // times of each rank's last instructions
  std::size_t window = 0;          // how many instructions that is
  bool too_far = false;            // an instruction was awaited whose times are not kept
  std::vector<ChannelState> channels;
  std::vector<Joint> joints;
  std::vector<std::uint32_t> runnable;
};

}  // namespace orrery::models
