#include "models/lowering/lower.hpp"

namespace orrery::models {

Program insert_host_waits(Program program, const Software& software) {
  if (!software.host.waits_for_tensor) return program;
  for (std::uint32_t b = 0; b < program.blocks.size(); ++b) {
    if (!program.use_of(b).of(ModelPart::layer)) continue;
    for (Operation& op : program.blocks[b].operations) {
      const bool python = op.pass == Pass::forward || op.pass == Pass::recompute;
      if (op.kind == OpKind::collective && op.queue == Lane::tensor && python) op.host_waits = true;
    }
  }
  return program;
}

}  // namespace orrery::models
