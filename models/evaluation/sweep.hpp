#pragma once
// The schedule level, in static order and without a heap: each rank class runs until it needs a
// transfer that is not sent yet, or a collective that some member has not reached. Order within a
// queue is fixed, so the order in which classes are visited changes nothing.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "models/evaluation/chain.hpp"
#include "models/evaluation/priced.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

/// `RunPhase(phase, state)` turns queue times by a phase.
template <class RunPhase>
class Sweep {
 public:
  using State = Chain<NumberTime>;

  Sweep(const PricedProgram& priced, RunPhase run_phase)
      : priced_{priced}, program_{*priced.program}, run_phase_{std::move(run_phase)} {
    ranks_.resize(program_.classes.size());
    channels_.resize(program_.channels.size());
    joints_.resize(program_.collectives.size());
    reserve_channels();
  }

  StepTimes run() {
    for (std::size_t c = ranks_.size(); c-- > 0;) {
      ranks_[c].state[state_host].value = priced_.step_launch.count();
      ranks_[c].state[state_data].value = priced_.carried_by(static_cast<std::uint32_t>(c)).count();
      runnable_.push_back(static_cast<std::uint32_t>(c));
    }
    while (!runnable_.empty()) {
      const std::uint32_t c = runnable_.back();
      runnable_.pop_back();
      advance(c);
    }
    for (std::uint32_t c = 0; c < ranks_.size(); ++c) {
      if (ranks_[c].at < program_.classes[c].instructions.size()) throw stuck();
    }
    return result();
  }

 private:
  struct Rank {
    State state{};
    std::size_t at = 0;
    std::int64_t output = 0;  // of the last compute instruction
    bool announced = false;   // at a joint collective that waits for others
    std::int64_t input = 0;   // end of the receive before
  };
  struct ChannelState {
    std::vector<std::int64_t> ready;  // of sends, in order
    std::vector<Time> ends;           // of transfers, in order
    bool awaited = false;             // the receiver is parked here
  };
  struct Joint {
    std::size_t arrived = 0;
    std::int64_t start = 0;
    bool done = false;
  };

  void reserve_channels() {
    const auto transfers =
        static_cast<std::size_t>(program_.plan.micro_batches() * program_.plan.virtual_stages);
    for (ChannelState& channel : channels_) {
      channel.ready.reserve(transfers);
      channel.ends.reserve(transfers);
    }
  }

  void advance(std::uint32_t c) {
    const std::vector<Instruction>& list = program_.classes[c].instructions;
    Rank& rank = ranks_[c];
    while (rank.at < list.size() && execute(c, rank, list[rank.at])) ++rank.at;
  }

  /// False if the instruction cannot proceed yet.
  bool execute(std::uint32_t c, Rank& rank, const Instruction& each) {
    switch (each.op) {
      case Opcode::forward:
      case Opcode::backward:
        compute(rank, each, rank.input);
        return true;
      case Opcode::optimizer:
        compute(rank, each, rank.state[state_data].value);
        return true;
      case Opcode::compress:
        run(rank, each, 0);
        return true;
      case Opcode::send:
        send(rank, each.target);
        return true;
      case Opcode::receive:
        return receive(rank, each.target);
      default:
        return join(c, rank, each.target);
    }
  }

  void run(Rank& rank, const Instruction& each, std::int64_t input) {
    if (each.awaits != no_binding) await(rank, each.awaits);
    rank.state[state_io].value = input;
    run_phase_(each.target, rank.state);
  }

  void compute(Rank& rank, const Instruction& each, std::int64_t input) {
    run(rank, each, input);
    rank.output = rank.state[state_io].value;
    rank.input = 0;
  }

  void await(Rank& rank, std::uint32_t id) {
    ensure(joints_[id].done, "a phase awaits a collective that is not earlier in its list");
    const std::int64_t end = joints_[id].start + priced_.collectives[id].duration.count();
    std::int64_t& compute = rank.state[state_compute].value;
    compute = std::max({compute, rank.state[state_host].value, end});
  }

  void send(Rank& rank, std::uint32_t id) {
    std::int64_t& host = rank.state[state_host].value;
    host += priced_.transfer_launch.count();
    ChannelState& channel = channels_[id];
    channel.ready.push_back(std::max(host, rank.output));
    if (channel.awaited) {
      channel.awaited = false;
      runnable_.push_back(program_.channels[id].to);
    }
  }

  bool receive(Rank& rank, std::uint32_t id) {
    ChannelState& channel = channels_[id];
    const std::size_t k = channel.ends.size();
    if (k >= channel.ready.size()) {
      channel.awaited = true;
      return false;
    }
    std::int64_t& host = rank.state[state_host].value;
    host += priced_.transfer_launch.count();
    const std::int64_t before = k > 0 ? channel.ends[k - 1].count() : 0;
    const std::int64_t end =
        std::max({channel.ready[k], host, before}) + priced_.channels[id].count();
    channel.ends.push_back(Time{end});
    rank.input = end;
    if (priced_.waits_for_receive()) host = std::max(host, end);
    return true;
  }

  bool join(std::uint32_t c, Rank& rank, std::uint32_t id) {
    Joint& joint = joints_[id];
    const JointCollective& collective = program_.collectives[id];
    const PricedOperation& price = priced_.collectives[id];
    if (!rank.announced) {
      std::int64_t& host = rank.state[state_host].value;
      host += price.launch.count();
      joint.start = std::max({joint.start, host, rank.state[state_compute].value,
                              rank.state[state_data].value + price.lead.count()});
      rank.announced = true;
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
    if (priced_.waits_for(collective)) {
      rank.state[state_host].value = std::max(rank.state[state_host].value, end);
    }
    return true;
  }

  ContractError stuck() const {
    std::string text = "the schedule cannot proceed:";
    for (std::uint32_t c = 0; c < ranks_.size(); ++c) {
      const std::size_t at = ranks_[c].at;
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
    for (const Rank& rank : ranks_) {
      const State& s = rank.state;
      times.ranks.push_back({Time{s[state_host].value}, Time{s[state_compute].value},
                             Time{s[state_tensor].value}, Time{s[state_data].value},
                             Time{s[state_copy].value}});
    }
    for (ChannelState& channel : channels_) times.transfers.push_back(std::move(channel.ends));
    times.step = std::max(times.scheduled(), priced_.bound.time);
    for (const Joint& joint : joints_) times.collective_starts.push_back(Time{joint.start});
    return times;
  }

  const PricedProgram& priced_;
  const Program& program_;
  RunPhase run_phase_;
  std::vector<Rank> ranks_;
  std::vector<ChannelState> channels_;
  std::vector<Joint> joints_;
  std::vector<std::uint32_t> runnable_;
};

}  // namespace orrery::models
