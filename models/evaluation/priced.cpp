#include "models/evaluation/priced.hpp"

#include <algorithm>

#include "models/evaluation/chain.hpp"

namespace orrery::models {

Time QueueTimes::last() const {
  return *std::max_element(free.begin(), free.end());
}

Time StepTimes::scheduled() const {
  Time last{};
  for (const QueueTimes& rank : ranks) last = std::max(last, rank.last());
  for (const std::vector<Time>& channel : transfers) {
    if (!channel.empty()) last = std::max(last, channel.back());  // they end in order
  }
  return last;
}

PricedProgram at_speed(const PricedProgram& priced, double speed) {
  PricedProgram slower = priced;
  for (std::size_t b = 0; b < slower.blocks.size(); ++b) {
    for (std::size_t i = 0; i < slower.blocks[b].size(); ++i) {
      if (priced.program->blocks[b].operations[i].kind == OpKind::collective) continue;
      Time& duration = slower.blocks[b][i].duration;
      duration = scaled(duration, 1 / speed);
    }
  }
  return slower;
}

ChainBlock::ChainBlock(const PricedProgram& priced, std::size_t id) {
  const Block& block = priced.program->blocks[id];
  const std::vector<PricedOperation>& prices = priced.blocks[id];
  steps.reserve(block.operations.size());
  for (std::size_t i = 0; i < block.operations.size(); ++i) {
    const Operation& op = block.operations[i];
    Step step;
    step.launch = prices[i].launch.count();
    step.duration = prices[i].duration.count();
    step.lead = prices[i].lead.count();
    step.trail = prices[i].trail.count();
    step.queue = static_cast<std::uint8_t>(op.queue);
    step.host_waits = priced.waits_for(op);
    step.collective = op.kind == OpKind::collective;
    step.meets =
        step.collective && priced.program->role_of(op.communicator) == CommunicatorRole::tensor;
    step.writes_output = std::any_of(op.writes.begin(), op.writes.end(), [&](OperandId id) {
      return block.operands[id].role == Role::output;
    });
    step.after_begin = static_cast<std::uint32_t>(after.size());
    after.insert(after.end(), op.after.begin(), op.after.end());
    step.after_end = static_cast<std::uint32_t>(after.size());
    steps.push_back(step);
  }
}

}  // namespace orrery::models
