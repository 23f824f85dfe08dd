#pragma once
// Evaluates a schedule in one pass, without an event queue: each rank class runs until it needs a
// transfer that is not sent yet, or a collective that some member has not reached. Order within a
// queue is fixed, so the order in which classes are visited changes no time. Leaves out links that
// traffic shares: traffic/.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "models/evaluation/priced.hpp"
#include "models/evaluation/step_times.hpp"
#include "models/evaluation/sweep_state.hpp"
#include "models/program/walk.hpp"

namespace orrery::models {

/// `RunPhase(phase, state)` takes lane times from before a phase to after it.
template <class RunPhase>
class Sweep {
 public:
  Sweep(const PricedProgram& priced, RunPhase run_phase)
      : priced_{priced},
        program_{*priced.program},
        run_phase_{std::move(run_phase)},
        state_{priced} {}

  /// Keeps the times of each rank's last `usual_window` instructions, because older ones are rarely
  /// awaited. If one is, the sweep runs again and keeps all of them.
  StepTimes run() {
    run_all(SweepState::usual_window);
    if (state_.too_far) run_all(std::bit_ceil(state_.longest_list()));
    for (std::uint32_t c = 0; c < state_.ranks.size(); ++c) {
      if (state_.ranks[c].at < program_.classes[c].instructions.size()) throw state_.stuck();
    }
    return state_.result();
  }

 private:
  using Rank = SweepState::Rank;

  void run_all(std::size_t window) {
    state_.begin(window);
    const auto classes = static_cast<std::uint32_t>(state_.ranks.size());
    for (std::uint32_t c = classes; c-- > 0;) state_.runnable.push_back(c);
    while (!state_.runnable.empty() && !state_.too_far) {
      const std::uint32_t c = state_.runnable.back();
      state_.runnable.pop_back();
      advance(c);
    }
  }

  /// Visitor that advances one class. A visit returns false if the instruction cannot proceed yet.
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
    Turn turn{*this, c, state_.ranks[c]};
    Token& at = turn.rank.at;
    while (at < list.size() && visit(at, list[at], turn)) ++at;
  }

  bool phase(std::uint32_t c, Rank& rank, Token i, const Instruction& each) {
    if (each.awaits != no_token) {
      rank.compute() =
          std::max({rank.compute(), rank.host(), state_.made(c, rank, each.awaits).end});
    }
    rank.state[state_io].value = state_.made(c, rank, each.input).output;
    run_phase_(each.target, rank.state);
    state_.make(rank, i, {rank.state[state_io].value, rank.compute()});
    return true;
  }

  bool send(std::uint32_t c, Rank& rank, Token i, const Instruction& each) {
    rank.host() += priced_.transfer_launch.count();
    SweepState::ChannelState& channel = state_.channels[each.target];
    const std::int64_t output = state_.made(c, rank, each.input).output;
    channel.ends.push_back(Time{std::max(rank.host(), output)});
    state_.make(rank, i, {output, output});
    if (channel.awaited) {
      channel.awaited = false;
      state_.runnable.push_back(program_.channels[each.target].to);
    }
    return true;
  }

  bool receive(Rank& rank, Token i, const Instruction& each) {
    SweepState::ChannelState& channel = state_.channels[each.target];
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
    state_.make(rank, i, {end, end});
    if (priced_.waits_for_receive()) rank.wait_host(end);
    return true;
  }

  bool join(std::uint32_t c, Rank& rank, Token i, const Instruction& each) {
    SweepState::Joint& joint = state_.joints[each.target];
    const JointCollective& collective = program_.collectives[each.target];
    const PricedOperation& price = priced_.collectives[each.target];
    if (!rank.announced) {
      rank.announced = true;
      rank.host() += price.launch.count();
      const std::int64_t computed = state_.made(c, rank, each.input).end;
      const std::int64_t ready = std::max(rank.host(), computed);
      rank.collectives_ready.push_back(Time{ready});
      joint.start =
          std::max({joint.start, ready, rank.state[state_data].value + price.lead.count()});
      if (++joint.arrived == collective.classes.size()) {
        joint.done = true;
        for (const std::uint32_t other : collective.classes) {
          if (other != c) state_.runnable.push_back(other);
        }
      }
    }
    if (!joint.done) return false;
    const std::int64_t end = joint.start + price.duration.count();
    rank.announced = false;
    rank.state[state_data].value = end;
    state_.make(rank, i, {end, end});
    if (priced_.waits_for(collective)) rank.wait_host(end);
    return true;
  }

  const PricedProgram& priced_;
  const Program& program_;
  RunPhase run_phase_;
  SweepState state_;
};

}  // namespace orrery::models
