#include "models/evaluation/chain.hpp"

#include <algorithm>

namespace orrery::models {

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
        step.collective && priced.program->role_of(op.communicator()) == CommunicatorRole::tensor;
    step.writes_output = std::ranges::any_of(
        op.writes, [&](OperandId id) { return to_other_block(block.operands[id].role); });
    step.after_begin = static_cast<std::uint32_t>(after.size());
    after.insert(after.end(), op.after.begin(), op.after.end());
    step.after_end = static_cast<std::uint32_t>(after.size());
    steps.push_back(step);
  }
}

}  // namespace orrery::models
