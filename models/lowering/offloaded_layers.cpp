// Activation offload: what forward saves in the first layers of each chunk is copied to the host
// when the layer ends, and back before its backward, concurrently with kernels of other layers. The
// copies run in order on the copy lane; because the host launches ahead, the next layer's
// activations arrive while this layer runs. Copies to files go in pieces through host memory. Left
// out: the device memory that copies in flight occupy, and the size of host memory.
// Source  cpu_offloading_num_layers of Megatron-Core, by Transformer Engine's cpu_offload.py

#include <algorithm>
#include <map>

#include "models/lowering/lower.hpp"
#include "models/plan/layers_per_chunk.hpp"

namespace orrery::models {

namespace {

Operation host_copy(const char* name, Pass pass, Bytes bytes) {
  Operation op;
  op.kind = OpKind::copy;
  op.name = name;
  op.pass = pass;
  op.queue = Lane::copy;
  op.time_class = TimeClass::other;
  op.bytes = bytes;
  return op;
}

/// Adds an operand for all that the host keeps of one run of the block.
OperandId add_on_host(Block& block, Bytes bytes) {
  Operand kept;
  kept.name = "activations.on_host";
  kept.role = Role::on_host;
  kept.dtype = DType::uint8;
  kept.shape = kept.uncut = {1, 1, bytes.count()};
  return block.add(std::move(kept));
}

bool has(const std::vector<OperandId>& ids, OperandId id) {
  return std::ranges::find(ids, id) != ids.end();
}

/// Appends a copy that waits, on each queue, for the last operation that writes what is copied; for
/// the block's input if no operation writes it.
void append_after_writers(Block& block, Operation copy) {
  std::map<Lane, OpId> last;
  for (std::size_t i = 0; i < block.operations.size(); ++i) {
    const Operation& op = block.operations[i];
    const auto copied = [&](OperandId id) { return has(copy.reads, id); };
    if (std::ranges::any_of(op.writes, copied)) {
      last[op.queue] = static_cast<OpId>(i);
    }
  }
  for (const auto& [queue, writer] : last) copy.after.push_back(writer);
  if (copy.after.empty()) copy.after.push_back(block_input);
  block.operations.push_back(std::move(copy));
}

/// Prepends a copy. On each queue, the first operation that reads what it brings back waits for it;
/// later ones follow in order.
void prepend_before_readers(Block& block, const Operation& copy) {
  std::map<Lane, bool> waits;
  for (Operation& op : block.operations) {
    for (OpId& each : op.after) {
      if (each != block_input) ++each;
    }
    const auto copied = [&](OperandId id) { return has(copy.writes, id); };
    if (waits[op.queue] || std::ranges::none_of(op.reads, copied)) continue;
    waits[op.queue] = true;
    op.after.push_back(0);
  }
  block.operations.insert(block.operations.begin(), copy);
}

void offload(Block& forward, Block& backward, bool in_files) {
  const Bytes bytes = backward.bytes(Role::saved);
  if (bytes == Bytes{}) return;
  Operation there = host_copy("activations.to_host", Pass::forward, bytes);
  Operation back = host_copy("activations.to_device", Pass::backward, bytes);
  there.mutable_files() = in_files ? FileUse::write : FileUse::none;
  back.mutable_files() = in_files ? FileUse::read : FileUse::none;
  for (std::size_t i = 0; i < backward.operands.size(); ++i) {
    if (backward.operands[i].role != Role::saved) continue;
    there.reads.push_back(*forward.find(backward.operands[i].name));
    back.writes.push_back(static_cast<OperandId>(i));
    backward.operands[i].role = Role::temporary;
  }
  there.writes = {add_on_host(forward, bytes)};
  back.reads = {add_on_host(backward, bytes)};
  drop_unsaved(forward, backward);
  append_after_writers(forward, std::move(there));
  prepend_before_readers(backward, back);
}

}  // namespace

void mark_offloaded(Program& program, const BlockInputs& inputs) {
  const std::int64_t count = inputs.plan.offload.layers;
  if (count == 0) return;
  copy_kinds(program, inputs,
             {"offloaded", [=](std::int64_t i) { return i < count; },
              [](LayerKind& kind) { kind.offloads = true; }});
}

Program offload_activations(Program program, const Plan& plan) {
  const bool in_files = plan.offload.device == OffloadDevice::nvme;
  for (const LayerKind& kind : program.kinds) {
    if (!kind.offloads) continue;
    offload(program.blocks[kind.forward], program.blocks[kind.backward], in_files);
  }
  return program;
}

}  // namespace orrery::models
