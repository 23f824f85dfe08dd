#include "models/lowering/lower.hpp"

namespace orrery::models {

namespace {

/// Where each matrix of an adapter is a unit of ZeRO-3, nothing hides the host's time for it: at
/// most two gathers are in flight, so the host waits for the kernels before each.
/// Source  PyTorch, torch.distributed.fsdp: limit_all_gathers (the default; two in flight); PEFT,
///         utils/other.py: fsdp_auto_wrap_policy makes each trainable leaf module a unit
void wait_for_adapters(Block& block) {
  for (std::size_t i = 1; i < block.operations.size(); ++i) {
    const Operation& op = block.operations[i];
    if (!op.module.adapter || !is_gemm(op.kind)) continue;
    block.operations[i - 1].host_waits = true;
    block.operations[i].host_waits = true;
  }
}

}  // namespace

Program insert_host_waits(Program program, const Software& software) {
  if (software.host.sharded_adapter > Time{} && program.sharding.parameters) {
    for (Block& each : program.blocks) wait_for_adapters(each);
  }
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
