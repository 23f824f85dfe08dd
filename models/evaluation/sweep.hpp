#pragma once
// The schedule level, in static order and without a heap: each rank class runs until it needs a
// transfer that is not sent yet, or a collective that some member has not reached. Order within a
// queue is fixed, so the order in which classes are visited changes nothing.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "models/evaluation/chain_times.hpp"
#include "models/evaluation/priced.hpp"
#include "models/evaluation/step_times.hpp"
#include "models/program/opcodes.hpp"
#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

/// `RunPhase(phase, state)` turns queue times by a phase.
template <class RunPhase>
class Sweep {
 public:
  using State = Chain<NumberTime>;

  Sweep(const PricedProgram& priced, RunPhase run_phase)
      : priced_{priced}, program_{*priced.program}, run_phase_{std::move(run_phase)} {}

  /// What was made a while ago is rarely awaited: it is kept only where a first run needs it.
  StepTimes run() {
    run_all(usual_window);
    if (too_far_) run_all(std::bit_ceil(longest_list()));
    for (std::uint32_t c = 0; c < ranks_.size(); ++c) {
      if (ranks_[c].at < program_.classes[c].instructions.size()) throw stuck();
    }
    return result();
  }

 private:
  /// Of a stage's instructions, one in so many is a send on either of its channels.
  static constexpr std::size_t usual_share = 5;
  static constexpr std::size_t usual_window = 16;  // instructions, a power of two

  struct Rank {
    State state{};
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

  void run_all(std::size_t window) {
    begin(window);
    for (auto c = static_cast<std::uint32_t>(ranks_.size()); c-- > 0;) runnable_.push_back(c);
    while (!runnable_.empty() && !too_far_) {
      const std::uint32_t c = runnable_.back();
      runnable_.pop_back();
      advance(c);
    }
  }

  void begin(std::size_t window) {
    too_far_ = false;
    window_ = window;
    made_.assign(2 * window * program_.classes.size(), 0);
    ranks_.assign(program_.classes.size(), {});
    for (std::uint32_t c = 0; c < ranks_.size(); ++c) {
      ranks_[c].outputs = made_.data() + 2 * window * c;
      ranks_[c].ends = ranks_[c].outputs + window;
      ranks_[c].state[state_host].value = priced_.step_launch.count();
      ranks_[c].state[state_data].value = priced_.carried_by(c).count();
    }
    joints_.assign(program_.collectives.size(), {});
    channels_.assign(program_.channels.size(), {});
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      const std::uint32_t from = program_.channels[c].from;
      channels_[c].ends.reserve(program_.classes[from].instructions.size() / usual_share);
    }
    runnable_.clear();
  }

  std::size_t longest_list() const {
    std::size_t longest = 1;
    for (const RankClass& each : program_.classes) {
      longest = std::max(longest, each.instructions.size());
    }
    return longest;
  }

  /// One class goes on. What a visit returns: false if the instruction cannot proceed yet.
  struct Turn {
    Sweep& sweep;
    std::uint32_t rank_class;
    Rank& rank;

    bool phase(Token i, const Instruction& each) { return sweep.phase(rank_class, rank, i, each); }
    bool send(Token i, const Instruction& each) { return sweep.send(rank_class, rank, i, each); }
    bool receive(Token i, const Instruction& each) { return sweep.receive(rank, i, each); }
    bool joint(Token i, const Instruction& each) { return sweep.join(rank_class, rank, i, each); }
  };

  void advance(std::uint32_t c) {
    const std::vector<Instruction>& list = program_.classes[c].instructions;
    Turn turn{*this, c, ranks_[c]};
    Token& at = turn.rank.at;
    while (at < list.size() && visit(at, list[at], turn)) ++at;
  }

  Made made(std::uint32_t c, const Rank& rank, Token token) {
    if (token == no_token) return {0, 0};
    const std::size_t kept = token & (window_ - 1);
    const Token age = rank.at - token - 1;
    return age < window_ - 1 ? Made{rank.outputs[kept], rank.ends[kept]}
                             : made_long_ago(c, rank, token);
  }
  /// A token stands for what is earlier in the list; nothing is waited for without one.
  [[gnu::noinline]] Made made_long_ago(std::uint32_t c, const Rank& rank, Token token) {
    ensure(token < rank.at, "an instruction awaits what is not earlier in its list");
    const Instruction& maker = program_.classes[c].instructions[token];
    too_far_ = too_far_ || !is_joint(maker);
    if (too_far_) return {0, 0};
    const std::int64_t end =
        joints_[maker.target].start + priced_.collectives[maker.target].duration.count();
    return {end, end};
  }
  void make(Rank& rank, Token i, Made made) const {
    rank.outputs[i & (window_ - 1)] = made.output;
    rank.ends[i & (window_ - 1)] = made.end;
  }

  bool phase(std::uint32_t c, Rank& rank, Token i, const Instruction& each) {
    if (each.awaits != no_token) {
      rank.compute() = std::max({rank.compute(), rank.host(), made(c, rank, each.awaits).end});
    }
    rank.state[state_io].value = made(c, rank, each.input).output;
    run_phase_(each.target, rank.state);
    make(rank, i, {rank.state[state_io].value, rank.compute()});
    return true;
  }

  bool send(std::uint32_t c, Rank& rank, Token i, const Instruction& each) {
    rank.host() += priced_.transfer_launch.count();
    ChannelState& channel = channels_[each.target];
    const std::int64_t output = made(c, rank, each.input).output;
    channel.ends.push_back(Time{std::max(rank.host(), output)});
    make(rank, i, {output, output});
    if (channel.awaited) {
      channel.awaited = false;
      runnable_.push_back(program_.channels[each.target].to);
    }
    return true;
  }

  bool receive(Rank& rank, Token i, const Instruction& each) {
    ChannelState& channel = channels_[each.target];
    const std::size_t k = channel.received;
    if (k == channel.ends.size()) {
      channel.awaited = true;
      return false;
    }
    ++channel.received;
    rank.host() += priced_.transfer_launch.count();
    const std::int64_t before = k > 0 ? channel.ends[k - 1].count() : 0;
    const std::int64_t end = std::max({channel.ends[k].count(), rank.host(), before}) +
                             priced_.channels[each.target].count();
    channel.ends[k] = Time{end};
    make(rank, i, {end, end});
    if (priced_.waits_for_receive()) rank.wait_host(end);
    return true;
  }

  bool join(std::uint32_t c, Rank& rank, Token i, const Instruction& each) {
    Joint& joint = joints_[each.target];
    const JointCollective& collective = program_.collectives[each.target];
    const PricedOperation& price = priced_.collectives[each.target];
    if (!rank.announced) {
      rank.announced = true;
      rank.host() += price.launch.count();
      const std::int64_t computed = made(c, rank, each.input).end;
      const std::int64_t ready = std::max(rank.host(), computed);
      rank.collectives_ready.push_back(Time{ready});
      joint.start =
          std::max({joint.start, ready, rank.state[state_data].value + price.lead.count()});
      if (++joint.arrived == collective.classes.size()) {
        joint.done = true;
        for (const std::uint32_t other : collective.classes) {
          if (other != c) runnable_.push_back(other);
        }
      }
    }
    if (!joint.done) return false;
    const std::int64_t end = joint.start + price.duration.count();
    rank.announced = false;
    rank.state[state_data].value = end;
    make(rank, i, {end, end});
    if (priced_.waits_for(collective)) rank.wait_host(end);
    return true;
  }

  ContractError stuck() const {
    std::string text = "the schedule cannot proceed:";
    for (std::uint32_t c = 0; c < ranks_.size(); ++c) {
      const Token at = ranks_[c].at;
      const std::vector<Instruction>& list = program_.classes[c].instructions;
      if (at >= list.size()) continue;
      text += " stage " + std::to_string(program_.classes[c].stage) + " waits at i" +
              std::to_string(at) + " " + std::string{name(list[at].op)};
      if (list[at].op == Opcode::receive) {
        text += " from stage " + std::to_string(program_.channels[list[at].target].from);
      }
      text += ";";
    }
    text.pop_back();
    return ContractError{text};
  }

  StepTimes result() {
    StepTimes times;
    for (Rank& rank : ranks_) {
      const State& s = rank.state;
      times.collectives_ready.push_back(std::move(rank.collectives_ready));
      times.ranks.push_back(queue_times(s));
    }
    for (ChannelState& channel : channels_) {
      channel.ends.resize(channel.received);
      times.transfers.push_back(std::move(channel.ends));
    }
    times.step = std::max(times.scheduled(), priced_.bound.time);
    for (const Joint& joint : joints_) times.collective_starts.push_back(Time{joint.start});
    return times;
  }

  const PricedProgram& priced_;
  const Program& program_;
  RunPhase run_phase_;
  std::vector<Rank> ranks_;
  std::vector<std::int64_t> made_;  // by the last instructions of each rank
  std::size_t window_ = 0;          // how many of them
  bool too_far_ = false;            // one was awaited that is not kept
  std::vector<ChannelState> channels_;
  std::vector<Joint> joints_;
  std::vector<std::uint32_t> runnable_;
};

}  // namespace orrery::models
