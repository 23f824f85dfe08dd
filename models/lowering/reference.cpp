// Direct preference optimisation (DPO): a frozen reference model of the same size runs every
// sequence, forward only. Each of its layers runs right after the model's, in the same block, so
// that both have the same pipeline stages: a stage sends on the activations of both, but gradients
// of the model alone. It saves nothing for backward. Left out: the loss over pairs, a few
// numbers for each sequence. A batch counts sequences, two for each pair.
// Source  Rafailov et al. 2023, "Direct Preference Optimization", arXiv 2305.18290

#include <string>

#include "models/lowering/lower.hpp"

namespace orrery::models {

namespace {

OperandId mirrored(Block& block, OperandId id) {
  Operand copy = block.operands[id];
  if (copy.role == Role::tokens || copy.role == Role::labels) return id;
  copy.name = "reference." + copy.name;
  if (copy.role == Role::saved) copy.role = Role::temporary;
  if (copy.role == Role::parameter) {
    copy.frozen = true;
    copy.tensor = "reference." + copy.tensor;
  }
  return block.add(std::move(copy));
}

/// Appends the same operations with the reference's own operands.
void mirror(Block& block) {
  const std::vector<Operation> own = block.operations;
  for (Operation op : own) {
    op.name = "reference." + op.name;
    move_operands(op, [&](OperandId id) { return mirrored(block, id); });
    block.operations.push_back(std::move(op));
  }
  link(block);
}

}  // namespace

Program insert_reference(Program program, Task task) {
  if (task != Task::dpo) return program;
  program.reference_bytes = program.activation_bytes;
  for (LayerKind& kind : program.kinds) {
    mirror(program.blocks[kind.forward]);
    kind.frozen = frozen_bytes_of(program.blocks[kind.forward]);
  }
  for (Unit& unit : program.units) {
    unit.frozen = Bytes{};
    for (const std::uint32_t kind : unit.kinds) unit.frozen += program.kinds[kind].frozen;
  }
  return program;
}

}  // namespace orrery::models
