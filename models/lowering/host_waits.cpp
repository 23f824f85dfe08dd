#include <algorithm>
#include <iterator>
#include <vector>

#include "models/lowering/lower.hpp"

namespace orrery::models {

namespace {

bool is_python(Pass pass) {
  return pass == Pass::forward || pass == Pass::recompute;
}

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

void wait_for_tensor(Block& block) {
  for (Operation& op : block.operations) {
    const bool tensor = op.kind == OpKind::collective && op.queue == Lane::tensor;
    if (tensor && is_python(op.pass)) op.host_waits = true;
  }
}

/// Rows of experts are permuted, and sent where their experts are on other ranks. The host waits
/// until they have arrived before it launches what works on them: sorting, quantising, products.
/// Backward has the numbers of rows already.
/// Source  Megatron-Core 0.12, transformer/moe/experts.py (TEGroupedMLP.forward:
///         tokens_per_expert.tolist()), token_dispatcher.py
void wait_for_rows(Block& block) {
  std::vector<Operation>& all = block.operations;
  const auto works_on_rows = [](const Operation& op) {
    return op.kind == OpKind::grouped_gemm ||
           (op.kind == OpKind::permute && op.moves() == RowMove::by_expert);
  };
  for (auto at = all.begin(); at != all.end(); ++at) {
    const bool sends = at->kind == OpKind::permute && at->moves() == RowMove::dispatch;
    if (!sends || !is_python(at->pass)) continue;
    auto first = std::find_if(at, all.end(), works_on_rows);
    if (first == all.end()) continue;
    while (std::prev(first)->kind == OpKind::quantise) --first;
    std::prev(first)->host_waits = true;
  }
}

}  // namespace

Program insert_host_waits(Program program, const Software& software, const Plan& plan) {
  if (software.host.sharded_adapter > Time{} && program.sharding.parameters) {
    for (Block& each : program.blocks) wait_for_adapters(each);
  }
  // With a capacity every expert has as many rows, and graphs cannot wait.
  const bool even = plan.experts.capacity > 0 && plan.experts.pad_to_capacity;
  if (software.host.waits_for_rows && !even && !program.graphs) {
    for (Block& each : program.blocks) wait_for_rows(each);
  }
  if (!software.host.waits_for_tensor) return program;
  for (std::uint32_t b = 0; b < program.blocks.size(); ++b) {
    if (program.use_of(b).of(ModelPart::layer)) wait_for_tensor(program.blocks[b]);
  }
  return program;
}

}  // namespace orrery::models
