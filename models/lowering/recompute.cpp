#include "models/lowering/lower.hpp"

namespace orrery::models {

namespace {

/// Does backward run this forward operation again?
bool repeated(const Operation& op, Recompute recompute) {
  return recompute == Recompute::full || (recompute == Recompute::selective && op.attention_core);
}

/// Adds `operand` of another block under its own name.
OperandId adopt(Block& block, const Operand& operand) {
  if (const auto known = block.find(operand.name)) return *known;
  block.operands.push_back(operand);
  return static_cast<OperandId>(block.operands.size() - 1);
}

/// Does a forward operation that is not repeated read it? Then it is kept for that one's backward.
bool feeds_others(const Block& forward, std::string_view operand, Recompute recompute) {
  for (const Operation& op : forward.operations) {
    if (repeated(op, recompute)) continue;
    for (const OperandId id : op.reads) {
      if (forward.operands[id].name == operand) return true;
    }
  }
  return false;
}

/// Forward's input is given to backward as a saved operand; everything else that forward made and
/// backward makes again lives only inside backward.
void settle_roles(const Block& forward, Block& backward, const std::vector<Operation>& again,
                  Recompute recompute) {
  for (const Operation& op : again) {
    for (const OperandId id : op.writes) {
      Operand& written = backward.operands[id];
      const bool made = written.role == Role::saved || written.role == Role::output;
      if (made && !feeds_others(forward, written.name, recompute)) written.role = Role::temporary;
    }
    for (const OperandId id : op.reads) {
      Operand& read = backward.operands[id];
      if (read.role == Role::input) read.role = Role::saved;
    }
  }
}

void recompute_block(Block& forward, Block& backward, Recompute recompute) {
  std::vector<Operation> again;
  for (const Operation& op : forward.operations) {
    if (!repeated(op, recompute)) continue;
    Operation copy = op;
    copy.pass = Pass::recompute;
    copy.name += ".again";
    const auto move = [&](std::vector<OperandId>& ids) {
      for (OperandId& id : ids) id = adopt(backward, forward.operands[id]);
    };
    move(copy.reads);
    move(copy.writes);
    for (auto* uses : {&copy.needs, &copy.makes}) {
      for (OperandUse& each : *uses) each.operand = adopt(backward, forward.operands[each.operand]);
    }
    again.push_back(std::move(copy));
  }
  settle_roles(forward, backward, again, recompute);
  backward.operations.insert(backward.operations.begin(), again.begin(), again.end());
  drop_unsaved(forward, backward);
  link(backward);
}

}  // namespace

Program insert_recompute(Program program, Recompute recompute) {
  if (recompute == Recompute::none) return program;
  for (const LayerKind& kind : program.kinds) {
    if (kind.part != ModelPart::layer) continue;
    recompute_block(program.blocks[kind.forward], program.blocks[kind.backward], recompute);
  }
  return program;
}

}  // namespace orrery::models
