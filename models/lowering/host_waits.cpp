#include "models/lowering/lower.hpp"

namespace orrery::models {

Program insert_host_waits(Program program, const Software& software) {
  if (!software.host.waits_for_tensor) return program;
  for (const BlockIndex index : {layer_forward, layer_backward}) {
    for (Operation& op : program.blocks[index].operations) {
      const bool python = op.pass == Pass::forward || op.pass == Pass::recompute;
      if (op.kind == OpKind::collective && python) op.host_waits = true;
    }
  }
  return program;
}

}  // namespace orrery::models
