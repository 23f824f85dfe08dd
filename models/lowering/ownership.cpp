#include "models/lowering/lower.hpp"

namespace orrery::models {

std::int64_t owned_parameters(const Program& program, std::uint32_t forward_block) {
  const Block& block = program.blocks[forward_block];
  std::int64_t owned = parameters_of(block);
  const bool shares =
      forward_block == head_forward && program.model.tied_embeddings && program.plan.pipeline == 1;
  if (shares) {
    if (const auto weight = block.find("head.weight")) owned -= block.operands[*weight].elements();
  }
  return owned;
}

std::int64_t owned_parameters(const Program& program, const Phase& forward) {
  std::int64_t sum = 0;
  for (const Invocation& run : forward.invocations) {
    sum += run.count * owned_parameters(program, run.block);
  }
  return sum;
}

}  // namespace orrery::models
