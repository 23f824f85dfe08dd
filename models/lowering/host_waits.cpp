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

bool is_python(Pass pass) {
  return pass == Pass::forward || pass == Pass::recompute;
}

/// Before rows are sent to experts, the host waits for the number of rows of each, which the router
/// computed: it allocates what arrives, and launches the products with their sizes. Backward has
/// the numbers already.
/// Source  Megatron-Core 0.12 and later, transformer/moe/token_dispatcher.py (cuda_sync_point
///         before_ep_alltoall); DeepEP, branch hybrid-ep, csrc/hybrid_ep/executor/executor.cu
///         (dispatch_preprocess: cudaStreamSynchronize unless the number is known before)
void wait_for_rows(Block& block) {
  for (std::size_t i = 1; i < block.operations.size(); ++i) {
    const Operation& op = block.operations[i];
    const bool sends = op.kind == OpKind::permute && op.moves() == RowMove::dispatch;
    if (sends && is_python(op.pass)) block.operations[i - 1].host_waits = true;
  }
}

}  // namespace

Program insert_host_waits(Program program, const BlockInputs& inputs) {
  const Software& software = inputs.software;
  if (software.host.sharded_adapter > Time{} && program.sharding.parameters) {
    for (Block& each : program.blocks) wait_for_adapters(each);
  }
  // With a capacity every expert has as many rows, and graphs cannot wait.
  const ExpertChoices& experts = inputs.plan.experts;
  const bool even = experts.capacity > 0 && experts.pad_to_capacity;
  if (software.host.expert_layer > Time{} && !even && !program.graphs) {
    for (Block& each : program.blocks) wait_for_rows(each);
  }
  if (!software.host.waits_for_tensor) return program;
  for (std::uint32_t b = 0; b < program.blocks.size(); ++b) {
    if (!program.use_of(b).of(ModelPart::layer)) continue;
    for (Operation& op : program.blocks[b].operations) {
      const bool tensor = op.kind == OpKind::collective && op.queue == Lane::tensor;
      if (tensor && is_python(op.pass)) op.host_waits = true;
    }
  }
  return program;
}

}  // namespace orrery::models
