#pragma once
// Replays the phases of one rank's step, operation by operation. Other instructions: replayer.hpp.

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "models/evaluation/chain.hpp"
#include "models/evaluation/inside_replay.hpp"
#include "models/evaluation/replay.hpp"
#include "models/program/opcodes.hpp"

namespace orrery::models {

/// The current state of a replay.
struct ReplayPlace {
  Chain<NumberTime> state{};
  InstructionRecord record;  // of the current instruction
};

/// `Observer` is that of Replayer.
template <class Observer>
class PhaseReplayer {
 public:
  PhaseReplayer(const PricedProgram& priced, const StepTimes& times, std::uint32_t rank_class,
                Observer& observer)
      : observer_{observer},
        inside_{rank_class < times.inside.size() ? &times.inside[rank_class] : nullptr, blocks_} {
    const double speed = times.speeds.empty() ? 1 : times.speeds[rank_class];
    const std::optional<PricedProgram> slower =
        speed == 1 ? std::nullopt : std::optional{at_speed(priced, speed)};
    for (std::size_t b = 0; b < priced.program->blocks.size(); ++b) {
      blocks_.emplace_back(slower ? *slower : priced, b);
    }
  }
  PhaseReplayer(const PhaseReplayer&) = delete;
  PhaseReplayer& operator=(const PhaseReplayer&) = delete;

  /// Sends, receives and joint collectives change it, too.
  ReplayPlace& now() { return now_; }

  /// Has the kernels of the next phase wait for a joint collective with this end.
  void await(std::int64_t end) {
    const std::int64_t host = now_.state[state_host].value;
    std::int64_t& compute = now_.state[state_compute].value;
    awaited_ = end > std::max(compute, host) ? end : never;
    compute = std::max({compute, host, end});
  }

  /// Runs the phase of the current instruction; its first block's input is ready at `input`.
  InstructionTimes run(const Phase& phase, std::int64_t input) {
    inside_.begin(static_cast<Token>(now_.record.index), phase, ends_);
    now_.state[state_io].value = input;
    now_.record.start = Time{std::numeric_limits<std::int64_t>::max()};
    const bool down = descends(*now_.record.instruction);
    for (const Invocation& run : phase.invocations) {
      for (std::int64_t i = 0; i < run.count; ++i) {
        const std::int64_t layer = run.first_layer < 0 ? -1 : run.first_layer + (down ? -i : i);
        run_one(run.block, layer);
      }
    }
    return {now_.state[state_io].value, now_.state[state_compute].value};
  }

 private:
  void run_one(std::uint32_t id, std::int64_t layer) {
    const ChainBlock& block = blocks_[id];
    // Lane times just before each operation tell what it waited for last.
    Chain<NumberTime> queues = now_.state;
    const std::int64_t input = now_.state[state_io].value;
    const auto observed = [&](std::size_t i, NumberTime host, NumberTime start, NumberTime end) {
      const ChainBlock::Step& step = block.steps[i];
      NumberTime& queue = queues[step.queue];
      queue.advance(step.lead);
      if (step.queue == state_compute) {
        now_.record.start = std::min(now_.record.start, Time{start.value});
        now_.record.end = std::max(now_.record.end, Time{end.value});
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
    BlockRun<NumberTime> run{block, now_.state, ends_};
    for (std::size_t i = 0; i < block.steps.size(); ++i) {
      const auto [start, end] = inside_.span_of(block.steps[i], run.start(i));
      run.end_at(i, start, end, observed);
    }
    run.finish();
  }

  void observe(std::uint32_t id, std::int64_t layer, std::size_t i, NumberTime host,
               NumberTime start, NumberTime end, NumberTime queue, std::int64_t input) {
    const ChainBlock& block = blocks_[id];
    OperationRecord record;
    record.index = now_.record.index;
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

  Observer& observer_;
  std::vector<ChainBlock> blocks_;
  std::vector<NumberTime> ends_;  // of the block's operations
  InsideReplay inside_;
  ReplayPlace now_;
  std::int64_t awaited_ = never;  // end of the joint collective that held compute back until now
};

}  // namespace orrery::models
