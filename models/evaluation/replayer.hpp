#pragma once
// Replays one rank's step, instruction by instruction, with all times of other ranks given. Phases
// are replayed operation by operation: phase_replayer.hpp.

#include <algorithm>
#include <vector>

#include "models/evaluation/chain.hpp"
#include "models/evaluation/phase_replayer.hpp"
#include "models/evaluation/replay.hpp"
#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

/// Walks the instruction list of one class. `Observer` has `instruction(record)` and
/// `operation(record)`. If its `only_waits()` is true, it gets records only of compute kernels that
/// wait for more than their lane, and `at_once(block, operation, start, end)` for those that start
/// when their lane is free.
template <class Observer>
class Replayer {
 public:
  Replayer(const PricedProgram& priced, const StepTimes& times, std::uint32_t rank_class,
           Observer& observer)
      : priced_{priced},
        program_{*priced.program},
        times_{checked(times, program_)},
        list_{program_.classes.at(rank_class).instructions},
        observer_{observer},
        phases_{priced, times_, rank_class, observer},
        received_(program_.channels.size(), 0),
        made_(list_.size()) {
    now().state[state_host].value = priced.step_launch.count();
    now().state[state_data].value = priced.carried_by(rank_class).count();
  }

  void run() {
    for (Token i = 0; i < list_.size(); ++i) {
      now().record = {};
      now().record.index = i;
      now().record.instruction = &list_[i];
      now().record.before = now().state;
      made_[i] = visit(i, list_[i], *this);
      now().record.after = now().state;
      observer_.instruction(now().record);
    }
  }

  InstructionTimes send(Token, const Instruction& each) {
    host() += priced_.transfer_launch.count();
    const std::int64_t output = each.input == no_token ? 0 : made_[each.input].output;
    now().record.start = now().record.end = Time{std::max(host(), output)};
    return {output, output};
  }

  InstructionTimes receive(Token, const Instruction& each) {
    host() += priced_.transfer_launch.count();
    const std::vector<Time>& ends = times_.transfers[each.target];
    std::size_t& k = received_[each.target];
    ensure(k < ends.size(), "a replay met a transfer that never ended");
    now().record.start = times_.transfer_start(priced_, each.target, k);
    now().record.end = ends[k++];
    const std::int64_t end = now().record.end.count();
    if (priced_.waits_for_receive()) host() = std::max(host(), end);
    return {end, end};
  }

  InstructionTimes joint(Token, const Instruction& each) {
    const PricedOperation& price = priced_.collectives[each.target];
    host() += price.launch.count();
    now().record.lead = price.lead;
    now().record.start = times_.collective_starts[each.target];
    now().record.end = times_.collective_end(priced_, each.target);
    const std::int64_t end = now().state[state_data].value = now().record.end.count();
    if (priced_.waits_for(program_.collectives[each.target])) host() = std::max(host(), end);
    return {end, end};
  }

  InstructionTimes phase(Token, const Instruction& each) {
    if (each.awaits != no_token) phases_.await(made_[each.awaits].end);
    const std::int64_t input = each.input == no_token ? 0 : made_[each.input].output;
    return phases_.run(program_.phases[each.target], input);
  }

 private:
  static const StepTimes& checked(const StepTimes& times, const Program& program) {
    ensure(times.collective_starts.size() == program.collectives.size() &&
               times.transfers.size() == program.channels.size(),
           "a replay needs the times of its own program");
    return times;
  }

  ReplayPlace& now() { return phases_.now(); }
  std::int64_t& host() { return now().state[state_host].value; }

  const PricedProgram& priced_;
  const Program& program_;
  const StepTimes& times_;
  const std::vector<Instruction>& list_;
  Observer& observer_;
  PhaseReplayer<Observer> phases_;
  std::vector<std::size_t> received_;
  std::vector<InstructionTimes> made_;  // by instruction
};

}  // namespace orrery::models
