#include "models/evaluation/replay.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// Walks one class's list with every outside time given.
class Replayer {
 public:
  Replayer(const PricedProgram& priced, const StepTimes& times, std::uint32_t rank_class,
           const ReplayObserver& observer)
      : priced_{priced},
        program_{*priced.program},
        times_{times},
        list_{program_.classes.at(rank_class).instructions},
        observer_{observer},
        received_(program_.channels.size(), 0) {
    ensure(times.collective_starts.size() == program_.collectives.size() &&
               times.transfers.size() == program_.channels.size(),
           "a replay needs the times of its own program");
    for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
      blocks_.emplace_back(priced, b);
    }
    state_[state_host].value = priced.step_launch.count();
    state_[state_data].value = priced.carried_by(rank_class).count();
  }

  void run() {
    for (index_ = 0; index_ < list_.size(); ++index_) {
      InstructionRecord record;
      record.index = index_;
      record.instruction = &list_[index_];
      record.before = state_;
      execute(list_[index_], record);
      record.after = state_;
      if (observer_.instruction) observer_.instruction(record);
    }
  }

 private:
  std::int64_t& host() { return state_[state_host].value; }

  void execute(const Instruction& each, InstructionRecord& record) {
    switch (each.op) {
      case Opcode::forward:
      case Opcode::backward:
        return compute(each, input_, record);
      case Opcode::optimizer:
        return compute(each, state_[state_data].value, record);
      case Opcode::compress:
        return run(each, 0, record);
      case Opcode::send: {
        host() += priced_.transfer_launch.count();
        record.start = record.end = Time{std::max(host(), output_)};
        return;
      }
      case Opcode::receive:
        return receive(each, record);
      default:
        return join(each, record);
    }
  }

  void receive(const Instruction& each, InstructionRecord& record) {
    host() += priced_.transfer_launch.count();
    const std::vector<Time>& ends = times_.transfers[each.target];
    std::size_t& k = received_[each.target];
    ensure(k < ends.size(), "a replay met a transfer that never ended");
    record.end = ends[k++];
    record.start = record.end - priced_.channels[each.target];
    input_ = record.end.count();
    if (priced_.waits_for_receive()) host() = std::max(host(), input_);
  }

  void join(const Instruction& each, InstructionRecord& record) {
    const PricedOperation& price = priced_.collectives[each.target];
    host() += price.launch.count();
    record.lead = price.lead;
    record.start = times_.collective_starts[each.target];
    record.end = record.start + price.duration;
    state_[state_data].value = record.end.count();
    if (priced_.waits_for(program_.collectives[each.target])) {
      host() = std::max(host(), record.end.count());
    }
  }

  void compute(const Instruction& each, std::int64_t input, InstructionRecord& record) {
    run(each, input, record);
    output_ = state_[state_io].value;
    input_ = 0;
  }

  void run(const Instruction& each, std::int64_t input, InstructionRecord& record) {
    if (each.awaits != no_binding) await(each.awaits);
    state_[state_io].value = input;
    record.start = Time{std::numeric_limits<std::int64_t>::max()};
    for (const Invocation& run : program_.phases[each.target].invocations) {
      const bool backward = each.op == Opcode::backward;
      for (std::int64_t i = 0; i < run.count; ++i) {
        const std::int64_t layer = run.first_layer < 0 ? -1 : run.first_layer + (backward ? -i : i);
        run_one(run.block, layer, record);
      }
    }
  }

  void await(std::uint32_t joint) {
    const Time end = times_.collective_starts[joint] + priced_.collectives[joint].duration;
    std::int64_t& compute = state_[state_compute].value;
    awaited_ = end.count() > std::max(compute, host()) ? end.count() : never;
    compute = std::max({compute, host(), end.count()});
  }

  void run_one(std::uint32_t id, std::int64_t layer, InstructionRecord& record) {
    const ChainBlock& block = blocks_[id];
    // What each operation waited for last is read off the state just before it.
    Chain<NumberTime> queues = state_;
    const std::int64_t input = state_[state_io].value;
    run_block(block, state_, ends_,
              [&](std::size_t i, NumberTime host, NumberTime start, NumberTime end) {
                if (block.steps[i].queue == state_compute) {
                  record.start = std::min(record.start, Time{start.value});
                  record.end = std::max(record.end, Time{end.value});
                }
                NumberTime& queue = queues[block.steps[i].queue];
                queue.advance(block.steps[i].lead);
                if (observer_.operation) tell(id, layer, i, host, start, end, queue, input);
                queue = end;
                queue.advance(block.steps[i].trail);
              });
  }

  void tell(std::uint32_t id, std::int64_t layer, std::size_t i, NumberTime host, NumberTime start,
            NumberTime end, NumberTime queue, std::int64_t input) {
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
    if (queue.value < start.value) record.cause = Cause::host;
    const ChainBlock::Step& step = block.steps[i];
    const bool computes = step.queue == state_compute;
    if (computes && queue.value == awaited_ && start.value == awaited_) record.cause = Cause::joint;
    if (computes) awaited_ = never;
    for (std::uint32_t at = step.after_begin; at < step.after_end; ++at) {
      const OpId awaited = block.after[at];
      const std::int64_t ready = awaited == block_input ? input : ends_[awaited].value;
      if (ready != start.value || ready <= queue.value) continue;
      record.cause = awaited == block_input ? Cause::input : Cause::dependency;
      record.waited_for = awaited;
    }
    observer_.operation(record);
  }

  const PricedProgram& priced_;
  const Program& program_;
  const StepTimes& times_;
  const std::vector<Instruction>& list_;
  const ReplayObserver& observer_;
  std::vector<ChainBlock> blocks_;
  std::vector<std::size_t> received_;
  std::vector<NumberTime> ends_;
  Chain<NumberTime> state_{};
  std::size_t index_ = 0;
  std::int64_t input_ = 0, output_ = 0;
  std::int64_t awaited_ = never;  // end of the joint collective that held compute back until now
};

}  // namespace

void replay(const PricedProgram& priced, const StepTimes& times, std::uint32_t rank_class,
            const ReplayObserver& observer) {
  Replayer{priced, times, rank_class, observer}.run();
}

}  // namespace orrery::models
