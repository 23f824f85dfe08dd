#include "models/pricing/beside_communication.hpp"

#include <algorithm>

#include "models/program/opcodes.hpp"
#include "models/program/walk.hpp"

namespace orrery::models {

namespace {

bool is_kernel(const Operation& op) {
  return op.queue == Lane::compute;
}

Time kernels_of(const Block& block, const std::vector<PricedOperation>& prices) {
  Time sum{};
  for (std::size_t i = 0; i < prices.size(); ++i) {
    if (is_kernel(block.operations[i])) sum += prices[i].duration;
  }
  return sum;
}

/// Kernels of a whole step in one direction, and the communication that runs concurrently with
/// them.
struct Concurrent {
  Time kernels{}, overlapped{};

  void add(Time kernel_time, Time communication) {
    kernels += kernel_time;
    overlapped += std::min(kernel_time, communication);
  }
};

class Slowdown {
 public:
  Slowdown(PricedProgram& priced, double share)
      : priced_{priced}, program_{*priced.program}, share_{share} {
    for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
      kernels_.push_back(kernels_of(program_.blocks[b], priced.blocks[b]));
    }
  }

  void run() {
    Concurrent forward, backward;
    for (std::uint32_t c = 0; c < program_.classes.size(); ++c) add_class(c, forward, backward);
    for (std::uint32_t b = 0; b < program_.blocks.size(); ++b) {
      const Direction direction = program_.use_of(b).direction;
      Time more = hidden_in(b);
      if (direction == Direction::forward) more += part_of(forward, b);
      if (direction == Direction::backward || direction == Direction::weight_gradient) {
        more += part_of(backward, b);
      }
      lengthen_kernels(program_.blocks[b], scaled(std::min(more, kernels_[b]), share_),
                       priced_.blocks[b]);
    }
  }

 private:
  Time time_of(const Instruction& each) const {
    Time sum{};
    for (const Invocation& run : program_.phases[each.target].invocations) {
      sum += kernels_[run.block] * run.count;
    }
    return sum;
  }

  /// Goes through a class's list from its end: what backward follows a reduction overlaps with it.
  void add_class(std::uint32_t rank_class, Concurrent& forward, Concurrent& backward) const {
    Time run_forward{}, run_backward{}, after_reductions{}, reductions{};
    const std::vector<Instruction>& list = program_.classes[rank_class].instructions;
    for (auto each = list.rbegin(); each != list.rend(); ++each) {
      if (each->op == Opcode::forward) run_forward += time_of(*each);
      if (each->op == Opcode::backward || each->op == Opcode::weight_gradient) {
        run_backward += time_of(*each);
      }
      if (each->op != Opcode::reduce_gradient || run_backward == Time{}) continue;
      reductions += priced_.collectives[each->target].occupied();
      after_reductions = run_backward;
    }
    backward.kernels += run_backward;
    backward.overlapped += std::min(after_reductions, reductions);
    forward.add(run_forward, priced_.carried_by(rank_class));
  }

  /// A block's part of what overlaps in a whole step.
  Time part_of(const Concurrent& all, std::uint32_t block) const {
    if (all.kernels == Time{}) return Time{};
    return scaled(kernels_[block], ratio(all.overlapped, all.kernels));
  }

  Time hidden_in(std::uint32_t block) const {
    Time hidden{};
    for (std::size_t i = 0; i < priced_.blocks[block].size(); ++i) {
      const PricedOperation& price = priced_.blocks[block][i];
      if (program_.blocks[block].operations[i].kind != OpKind::collective) continue;
      hidden += price.lead + price.trail;
    }
    return hidden;
  }

  PricedProgram& priced_;
  const Program& program_;
  double share_;
  std::vector<Time> kernels_;  // by block
};

}  // namespace

void lengthen_kernels(const Block& block, Time more, std::vector<PricedOperation>& prices) {
  const Time kernels = kernels_of(block, prices);
  if (kernels == Time{} || more == Time{}) return;
  const double longer = 1 + ratio(more, kernels);
  for (std::size_t i = 0; i < prices.size(); ++i) {
    if (is_kernel(block.operations[i])) prices[i].duration = scaled(prices[i].duration, longer);
  }
}

void slow_beside_communication(PricedProgram& priced, double slowdown) {
  if (slowdown > 1) Slowdown{priced, slowdown - 1}.run();
}

}  // namespace orrery::models
