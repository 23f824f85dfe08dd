#include "tests/models/evaluation/reference.hpp"

#include <algorithm>

#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

std::string_view name(Mutation mutation) {
  constexpr std::string_view of[] = {"none",
                                     "step_launch",
                                     "last_dependency",
                                     "second_block_input",
                                     "queue_order",
                                     "operation_host_waits",
                                     "synchronous",
                                     "first_output",
                                     "chained_input",
                                     "channel_order",
                                     "receive_launch",
                                     "send_launch",
                                     "send_output",
                                     "transfer_launch",
                                     "blocking_receive",
                                     "blocking_communication",
                                     "phase_input",
                                     "first_arrival",
                                     "collective_launch",
                                     "collective_compute",
                                     "collective_order",
                                     "collective_host_waits",
                                     "awaited",
                                     "awaiting_host",
                                     "operation_lead",
                                     "operation_trail",
                                     "joint_lead",
                                     "carried",
                                     "bound"};
  static_assert(std::size(of) == static_cast<std::size_t>(Mutation::last));
  return of[static_cast<std::size_t>(mutation)];
}

namespace {

/// All that ranks wait for from each other, as far as it is known.
struct Outside {
  std::vector<std::vector<Time>> sends, receives;  // by channel: ready, launched
  std::vector<std::vector<Time>> ready;            // by collective, then class

  friend bool operator==(const Outside&, const Outside&) = default;
};

class Equations {
 public:
  Equations(const PricedProgram& priced, Mutation mutation)
      : priced_{priced}, program_{*priced.program}, mutation_{mutation} {}

  StepTimes solve() {
    Outside found = nothing();
    for (int round = 0; round < 10'000; ++round) {
      times_ = {};
      known_ = found;
      found_ = nothing();
      for (std::uint32_t c = 0; c < program_.classes.size(); ++c) run_rank(c);
      if (found_ == found) return finished();
      found = found_;
    }
    throw ContractError{"the equations have no solution"};
  }

 private:
  /// What an instruction made.
  struct Pair {
    Time output{}, end{};
  };
  struct Rank {
    Time host{}, free[lane_count]{};
    std::vector<Pair> made;  // by instruction

    Time& queue(Lane which) { return free[static_cast<int>(which)]; }
  };

  bool keeps(Mutation rule) const { return mutation_ != rule; }

  Outside nothing() const {
    Outside none;
    none.sends.resize(program_.channels.size());
    none.receives.resize(program_.channels.size());
    none.ready.assign(program_.collectives.size(), std::vector<Time>(program_.classes.size()));
    return none;
  }

  void run_rank(std::uint32_t c) {
    Rank rank;
    if (keeps(Mutation::step_launch)) rank.host = priced_.step_launch;
    if (keeps(Mutation::carried)) rank.queue(Lane::data) = priced_.carried_by(c);
    walk(program_, c, Turn{*this, rank, c});
    QueueTimes& own = times_.ranks.emplace_back();
    std::copy(std::begin(rank.free), std::end(rank.free), own.free.begin());
    own[Lane::host] = rank.host;
  }

  struct Turn {
    Equations& all;
    Rank& rank;
    std::uint32_t rank_class;

    void phase(Token, const Instruction& each) const { all.run_phase(rank, each); }
    void send(Token, const Instruction& each) const { all.send(rank, each); }
    void receive(Token, const Instruction& each) const { all.receive(rank, each.target); }
    void joint(Token, const Instruction& each) const { all.join(rank, rank_class, each); }
  };

  /// What was made under a token; all is ready at 0 without one.
  Pair made(const Rank& rank, Token token, Mutation rule) const {
    return token == no_token || !keeps(rule) ? Pair{} : rank.made.at(token);
  }

  void run_phase(Rank& rank, const Instruction& each) {
    if (each.awaits != no_token && keeps(Mutation::awaited)) {
      Time& compute = rank.queue(Lane::compute);
      if (keeps(Mutation::awaiting_host)) compute = std::max(compute, rank.host);
      compute = std::max(compute, rank.made.at(each.awaits).end);
    }
    Time input = made(rank, each.input, Mutation::phase_input).output;
    const Time first = input;
    for (const Invocation& run : program_.phases[each.target].invocations) {
      for (std::int64_t i = 0; i < run.count; ++i) {
        input = run_block(rank, run.block, keeps(Mutation::chained_input) ? input : first);
      }
    }
    rank.made.push_back({input, rank.queue(Lane::compute)});
  }

  Time run_block(Rank& rank, std::uint32_t id, Time input) {
    const Block& block = program_.blocks[id];
    std::vector<Time> ends;
    Time output = input;
    bool written = false;
    for (std::size_t i = 0; i < block.operations.size(); ++i) {
      const Operation& op = block.operations[i];
      const PricedOperation& price = priced_.blocks[id][i];
      rank.host += price.launch;
      const Time lead = keeps(Mutation::operation_lead) ? price.lead : Time{};
      const Time end = std::max(rank.host, waits(rank, op, lead, input, ends)) + price.duration;
      ends.push_back(end);
      const Time trail = keeps(Mutation::operation_trail) ? price.trail : Time{};
      (op.queue == Lane::host ? rank.host : rank.queue(op.queue)) = end + trail;
      if (host_waits(op)) rank.host = std::max(rank.host, end);
      if (!writes_output(block, op) || (written && !keeps(Mutation::first_output))) continue;
      output = end;
      written = true;
    }
    return output;
  }

  Time waits(Rank& rank, const Operation& op, Time lead, Time input,
             const std::vector<Time>& ends) const {
    Time ready{};
    if (keeps(Mutation::queue_order)) ready = rank.queue(op.queue) + lead;
    std::size_t count = op.after.size();
    if (!keeps(Mutation::last_dependency) && count > 0) --count;
    for (std::size_t k = 0; k < count; ++k) {
      const bool on_input = op.after[k] == block_input;
      if (on_input && k > 0 && !keeps(Mutation::second_block_input)) continue;
      ready = std::max(ready, on_input ? input : ends[op.after[k]]);
    }
    return ready;
  }

  bool host_waits(const Operation& op) const {
    const bool returns_late = priced_.synchronous && op.queue == Lane::compute;
    return (returns_late && keeps(Mutation::synchronous)) ||
           (blocks() && op.kind == OpKind::collective) ||
           (op.host_waits && keeps(Mutation::operation_host_waits));
  }

  bool blocks() const {
    return priced_.blocking_communication && keeps(Mutation::blocking_communication);
  }

  static bool writes_output(const Block& block, const Operation& op) {
    return std::any_of(op.writes.begin(), op.writes.end(),
                       [&](OperandId id) { return block.operands[id].role == Role::output; });
  }

  Time transfer_launch() const {
    return keeps(Mutation::transfer_launch) ? priced_.transfer_launch : Time{};
  }

  void send(Rank& rank, const Instruction& each) {
    rank.host += transfer_launch();
    const Time output = made(rank, each.input, Mutation::send_output).output;
    found_.sends[each.target].push_back(keeps(Mutation::send_launch) ? std::max(output, rank.host)
                                                                     : output);
    rank.made.push_back({output, output});
  }

  void receive(Rank& rank, std::uint32_t channel) {
    rank.host += transfer_launch();
    const std::size_t k = found_.receives[channel].size();
    found_.receives[channel].push_back(rank.host);
    const Time end = transfer_end(channel, k);
    rank.made.push_back({end, end});
    if (blocks() || (priced_.blocking_receive && keeps(Mutation::blocking_receive))) {
      rank.host = std::max(rank.host, end);
    }
  }

  /// As far as the last round knew of sends; a send not known yet is ready at 0.
  Time transfer_end(std::uint32_t channel, std::size_t k) const {
    Time end{};
    for (std::size_t i = 0; i <= k; ++i) {
      if (!keeps(Mutation::channel_order)) end = Time{};
      if (keeps(Mutation::receive_launch)) end = std::max(end, found_.receives[channel][i]);
      if (i < known_.sends[channel].size()) end = std::max(end, known_.sends[channel][i]);
      end += priced_.channels[channel];
    }
    return end;
  }

  void join(Rank& rank, std::uint32_t c, const Instruction& each) {
    const std::uint32_t id = each.target;
    const PricedOperation& price = priced_.collectives[id];
    if (keeps(Mutation::collective_launch)) rank.host += price.launch;
    const Time lead = keeps(Mutation::joint_lead) ? price.lead : Time{};
    Time ready = std::max(rank.host, made(rank, each.input, Mutation::collective_compute).end);
    if (keeps(Mutation::collective_order)) ready = std::max(ready, rank.queue(Lane::data) + lead);
    found_.ready[id][c] = ready;
    const Time end = start_of(id, known_) + price.duration;
    rank.queue(Lane::data) = end;
    rank.made.push_back({end, end});
    const bool waits =
        program_.collectives[id].host_waits && keeps(Mutation::collective_host_waits);
    if (waits || blocks()) rank.host = std::max(rank.host, end);
  }

  Time start_of(std::uint32_t id, const Outside& from) const {
    const std::vector<std::uint32_t>& classes = program_.collectives[id].classes;
    Time start = from.ready[id][classes.front()];
    for (const std::uint32_t c : classes) {
      const Time ready = from.ready[id][c];
      start = keeps(Mutation::first_arrival) ? std::max(start, ready) : std::min(start, ready);
    }
    return start;
  }

  StepTimes finished() {
    for (const QueueTimes& rank : times_.ranks) times_.step = std::max(times_.step, rank.last());
    for (std::uint32_t c = 0; c < program_.channels.size(); ++c) {
      times_.transfers.emplace_back();
      for (std::size_t k = 0; k < found_.receives[c].size(); ++k) {
        times_.transfers.back().push_back(transfer_end(c, k));
        times_.step = std::max(times_.step, times_.transfers.back().back());
      }
    }
    if (keeps(Mutation::bound)) times_.step = std::max(times_.step, priced_.bound.time);
    for (std::uint32_t id = 0; id < program_.collectives.size(); ++id) {
      times_.collective_starts.push_back(start_of(id, found_));
    }
    return std::move(times_);
  }

  const PricedProgram& priced_;
  const Program& program_;
  Mutation mutation_;
  Outside known_, found_;  // in the last round, in this one
  StepTimes times_;
};

}  // namespace

StepTimes evaluate_reference(const PricedProgram& priced, Mutation mutation) {
  return Equations{priced, mutation}.solve();
}

}  // namespace orrery::models
