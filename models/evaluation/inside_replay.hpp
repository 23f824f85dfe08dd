#pragma once
// Times of collectives inside phases in a replay of one rank, where the rank alone does not
// determine them: either they are given, or they follow from the latest members of its tensor
// group.

#include <algorithm>
#include <vector>

#include "models/evaluation/chain.hpp"
#include "models/evaluation/chain_times.hpp"
#include "models/evaluation/step_times.hpp"

namespace orrery::models {

class InsideReplay {
 public:
  /// `times` is null where the rank alone determines them.
  InsideReplay(const InsideTimes* times, const std::vector<ChainBlock>& blocks)
      : times_{times}, blocks_{blocks} {}

  /// To be called before the phase of instruction `i`. `ends` is scratch space.
  void begin(Token i, const Phase& phase, std::vector<NumberTime>& ends) {
    given_ = times_ != nullptr && next_phase_ < times_->phases.size() &&
             times_->phases[next_phase_] == i;
    if (given_) ++next_phase_;
    unit_starts_.clear();
    if (times_ != nullptr && next_unit_ < times_->units.size() &&
        times_->units[next_unit_].phase == i) {
      meet_unit(times_->units[next_unit_++], phase, ends);
    }
  }

  /// Start and end of an operation that this rank by itself could start at `start`.
  struct OperationSpan {
    NumberTime start, end;
  };
  OperationSpan span_of(const ChainBlock::Step& step, NumberTime start) {
    if (given_ && step.collective) {
      const NumberTime given{times_->starts.at(met_).count()};
      return {given, {times_->ends.at(met_++).count()}};
    }
    if (step.meets && !unit_starts_.empty()) {
      start = unit_starts_.back();
      unit_starts_.pop_back();
    }
    NumberTime end = start;
    end.advance(step.duration);
    return {start, end};
  }

 private:
  /// Evaluates the phase for an imaginary member each of whose lanes is as late as the latest of
  /// the group. It is never ahead of a real one, so the group's collectives start when its own do.
  void meet_unit(const UnitEntry& entry, const Phase& phase, std::vector<NumberTime>& ends) {
    Chain<NumberTime> latest = chain_of(entry.latest, entry.input);
    const auto note = [&](const ChainBlock& block) {
      return [this, &block](std::size_t i, NumberTime, NumberTime start, NumberTime) {
        if (block.steps[i].meets) unit_starts_.push_back(start);
      };
    };
    for (const Invocation& run : phase.invocations) {
      const ChainBlock& block = blocks_[run.block];
      for (std::int64_t k = 0; k < run.count; ++k) run_block(block, latest, ends, note(block));
    }
    std::ranges::reverse(unit_starts_);
  }

  const InsideTimes* times_;
  const std::vector<ChainBlock>& blocks_;
  std::size_t next_phase_ = 0, met_ = 0, next_unit_ = 0;
  std::vector<NumberTime> unit_starts_;  // of the collectives left in the phase, last first
  bool given_ = false;                   // `times_` has the collectives of this phase
};

}  // namespace orrery::models
