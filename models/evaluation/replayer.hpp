#pragma once
// One rank's step again, operation by operation, with every time of others given.

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "models/evaluation/chain.hpp"
#include "models/evaluation/replay.hpp"
#include "models/program/opcodes.hpp"
#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

/// Walks one class's list with every outside time given. `Observer` has `instruction(record)` and
/// `operation(record)`. One that wants records of kernels alone, and only where they wait
/// (`only_waits`), has `at_once(block, operation, start, end)` for those that begin when their lane
/// is free.
template <class Observer>
class Replayer {
 public:
  Replayer(const PricedProgram& priced, const StepTimes& times, std::uint32_t rank_class,
           Observer& observer)
      : priced_{priced},
        program_{*priced.program},
        times_{times},
        list_{program_.classes.at(rank_class).instructions},
        observer_{observer},
        received_(program_.channels.size(), 0),
        made_(list_.size()) {
    ensure(times.collective_starts.size() == program_.collectives.size() &&
               times.transfers.size() == program_.channels.size(),
           "a replay needs the times of its own program");
    const double speed = times.speeds.empty() ? 1 : times.speeds[rank_class];
    const std::optional<PricedProgram> slower =
        speed == 1 ? std::nullopt : std::optional{at_speed(priced, speed)};
    for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
      blocks_.emplace_back(slower ? *slower : priced, b);
    }
    if (!times.inside.empty()) inside_ = &times.inside[rank_class];
    state_[state_host].value = priced.step_launch.count();
    state_[state_data].value = priced.carried_by(rank_class).count();
  }

  void run() {
    for (index_ = 0; index_ < list_.size(); ++index_) {
      record_ = {};
      record_.index = index_;
      record_.instruction = &list_[index_];
      record_.before = state_;
      made_[index_] = visit(index_, list_[index_], *this);
      record_.after = state_;
      observer_.instruction(record_);
    }
  }

  Made send(Token, const Instruction& each) {
    host() += priced_.transfer_launch.count();
    const std::int64_t output = each.input == no_token ? 0 : made_[each.input].output;
    record_.start = record_.end = Time{std::max(host(), output)};
    return {output, output};
  }

  Made receive(Token, const Instruction& each) {
    host() += priced_.transfer_launch.count();
    const std::vector<Time>& ends = times_.transfers[each.target];
    std::size_t& k = received_[each.target];
    ensure(k < ends.size(), "a replay met a transfer that never ended");
    record_.start = times_.transfer_start(priced_, each.target, k);
    record_.end = ends[k++];
    const std::int64_t end = record_.end.count();
    if (priced_.waits_for_receive()) host() = std::max(host(), end);
    return {end, end};
  }

  Made joint(Token, const Instruction& each) {
    const PricedOperation& price = priced_.collectives[each.target];
    host() += price.launch.count();
    record_.lead = price.lead;
    record_.start = times_.collective_starts[each.target];
    record_.end = times_.collective_end(priced_, each.target);
    const std::int64_t end = state_[state_data].value = record_.end.count();
    if (priced_.waits_for(program_.collectives[each.target])) host() = std::max(host(), end);
    return {end, end};
  }

  Made phase(Token i, const Instruction& each) {
    given_ = inside_ != nullptr && next_phase_ < inside_->phases.size() &&
             inside_->phases[next_phase_] == i;
    if (given_) ++next_phase_;
    unit_starts_.clear();
    if (inside_ != nullptr && next_unit_ < inside_->units.size() &&
        inside_->units[next_unit_].phase == i) {
      meet_unit(inside_->units[next_unit_++], program_.phases[each.target]);
    }
    if (each.awaits != no_token) await(made_[each.awaits].end);
    state_[state_io].value = each.input == no_token ? 0 : made_[each.input].output;
    record_.start = Time{std::numeric_limits<std::int64_t>::max()};
    for (const Invocation& run : program_.phases[each.target].invocations) {
      const bool down = descends(each);
      for (std::int64_t i = 0; i < run.count; ++i) {
        const std::int64_t layer = run.first_layer < 0 ? -1 : run.first_layer + (down ? -i : i);
        run_one(run.block, layer);
      }
    }
    return {state_[state_io].value, state_[state_compute].value};
  }

 private:
  std::int64_t& host() { return state_[state_host].value; }

  void await(std::int64_t end) {
    std::int64_t& compute = state_[state_compute].value;
    awaited_ = end > std::max(compute, host()) ? end : never;
    compute = std::max({compute, host(), end});
  }

  /// A member that began as late as the latest of each queue is never before any of them: its
  /// collectives begin when theirs do.
  void meet_unit(const UnitEntry& entry, const Phase& phase) {
    Chain<NumberTime> latest = chain_of(entry.latest, entry.input);
    const auto note = [&](const ChainBlock& block) {
      return [this, &block](std::size_t i, NumberTime, NumberTime start, NumberTime) {
        if (block.steps[i].meets) unit_starts_.push_back(start);
      };
    };
    for (const Invocation& run : phase.invocations) {
      const ChainBlock& block = blocks_[run.block];
      for (std::int64_t k = 0; k < run.count; ++k) run_block(block, latest, ends_, note(block));
    }
    std::reverse(unit_starts_.begin(), unit_starts_.end());
  }

  void run_one(std::uint32_t id, std::int64_t layer) {
    const ChainBlock& block = blocks_[id];
    // What each operation waited for last is read off the state just before it.
    Chain<NumberTime> queues = state_;
    const std::int64_t input = state_[state_io].value;
    const auto observed = [&](std::size_t i, NumberTime host, NumberTime start, NumberTime end) {
      const ChainBlock::Step& step = block.steps[i];
      NumberTime& queue = queues[step.queue];
      queue.advance(step.lead);
      if (step.queue == state_compute) {
        record_.start = std::min(record_.start, Time{start.value});
        record_.end = std::max(record_.end, Time{end.value});
      }
      const bool at_once = start.value == queue.value && awaited_ == never;
      if (!observer_.only_waits() || (step.queue == state_compute && !at_once)) {
        observe(id, layer, i, host, start, end, queue, input);
      } else if (step.queue == state_compute) {
        observer_.at_once(id, i, Time{start.value}, Time{end.value});
      }
      queue = end;
      queue.advance(step.trail);
    };
    BlockRun<NumberTime> run{block, state_, ends_};
    for (std::size_t i = 0; i < block.steps.size(); ++i) {
      NumberTime start = run.start(i);
      if (given_ && block.steps[i].collective) {
        start.value = inside_->starts.at(met_).count();
        run.end_at(i, start, {inside_->ends.at(met_++).count()}, observed);
        continue;
      }
      if (block.steps[i].meets && !unit_starts_.empty()) {
        start = unit_starts_.back();
        unit_starts_.pop_back();
      }
      run.end(i, start, observed);
    }
    run.finish();
  }

  void observe(std::uint32_t id, std::int64_t layer, std::size_t i, NumberTime host,
               NumberTime start, NumberTime end, NumberTime queue, std::int64_t input) {
    const ChainBlock& block = blocks_[id];
    OperationRecord record;
    record.index = index_;
    record.block = id;
    record.layer = layer;
    record.operation = static_cast<std::uint32_t>(i);
    record.launched = Time{host.value};
    record.start = Time{start.value};
    record.end = Time{end.value};
    record.free = Time{queue.value};
    const ChainBlock::Step& step = block.steps[i];
    const bool waits = queue.value < start.value;
    if (waits) record.cause = Cause::host;
    if (step.queue == state_compute) {
      if (queue.value == awaited_ && start.value == awaited_) record.cause = Cause::joint;
      awaited_ = never;
    }
    for (std::uint32_t at = step.after_begin; waits && at < step.after_end; ++at) {
      const OpId awaited = block.after[at];
      const std::int64_t ready = awaited == block_input ? input : ends_[awaited].value;
      if (ready != start.value) continue;
      record.cause = awaited == block_input ? Cause::input : Cause::dependency;
      record.waited_for = awaited;
    }
    observer_.operation(record);
  }

  const PricedProgram& priced_;
  const Program& program_;
  const StepTimes& times_;
  const std::vector<Instruction>& list_;
  Observer& observer_;
  std::vector<ChainBlock> blocks_;
  std::vector<std::size_t> received_;
  std::vector<NumberTime> ends_;
  const InsideTimes* inside_ = nullptr;
  std::size_t next_phase_ = 0, met_ = 0;  // of inside_
  std::size_t next_unit_ = 0;
  std::vector<NumberTime> unit_starts_;  // of the phase's that are left, last first
  bool given_ = false;                   // the collectives of this phase are there
  Chain<NumberTime> state_{};
  std::vector<Made> made_;  // by instruction
  Token index_ = 0;
  InstructionRecord record_;      // of the instruction at index_
  std::int64_t awaited_ = never;  // end of the joint collective that held compute back until now
};

}  // namespace orrery::models
