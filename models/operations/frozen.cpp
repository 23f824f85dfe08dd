// Prunes a block for plans that train adapters alone. One rule for all operations: backward keeps
// what a trained gradient depends on, or the gradient that the layer below needs. So frozen
// matrices have no weight gradient, no accumulation and no saved copy of their input, and below the
// first adapter there is no backward at all.

#include <algorithm>
#include <vector>

#include "models/operations/blocks.hpp"

namespace orrery::models {

namespace {

/// Walks one block from its last operation to its first and keeps what is wanted.
class Pruner {
 public:
  Pruner(Block& block, bool passes_gradient)
      : block_{block}, wanted_(block.operands.size(), false) {
    for (std::size_t id = 0; id < wanted_.size(); ++id) {
      const Operand& each = block.operands[id];
      wanted_[id] = (each.role == Role::gradient && each.adapter) ||
                    (each.role == Role::output && passes_gradient);
    }
  }

  void run() {
    std::vector<Operation> kept;
    for (auto op = block_.operations.rbegin(); op != block_.operations.rend(); ++op) {
      if (prune(*op)) kept.push_back(std::move(*op));
    }
    std::ranges::reverse(kept);
    block_.operations = std::move(kept);
    block_.keep(wanted_);
    link(block_);
  }

 private:
  /// Removes an operation's unwanted outputs; false where none is left.
  bool prune(Operation& op) {
    const auto unwanted = [&](OperandId id) { return !wanted_[id]; };
    for (const OperandId id : op.writes) {
      if (unwanted(id)) op.bytes = op.bytes - block_.operands[id].moved();
    }
    std::erase_if(op.writes, unwanted);
    if (op.writes.empty()) return false;
    for (const OperandId id : op.reads) wanted_[id] = true;
    const auto unused = [&](const OperandUse& use) { return unwanted(use.operand); };
    std::erase_if(op.needs, unused);  // fetched for an operation that is gone
    std::erase_if(op.makes, unused);
    return true;
  }

  /// Drops operands that no operation uses any more, and renumbers the others.
  Block& block_;
  std::vector<bool> wanted_;  // operands that kept operations read, and the gradients asked for
};

void mark_frozen(Block& block) {
  for (Operand& each : block.operands) {
    each.frozen = each.role == Role::parameter && !each.adapter;
  }
}

/// With a fused loss, forward computes the head's weight gradients.
void drop_weight_gradients(Block& forward) {
  std::erase_if(forward.operations, [&](const Operation& op) {
    return !op.writes.empty() && std::ranges::all_of(op.writes, [&](OperandId id) {
      const Operand& each = forward.operands[id];
      return each.role == Role::gradient && !each.adapter;
    });
  });
  link(forward);
}

}  // namespace

void freeze(BlockPair& pair, bool passes_gradient) {
  mark_frozen(pair.forward);
  mark_frozen(pair.backward);
  drop_weight_gradients(pair.forward);
  Pruner{pair.backward, passes_gradient}.run();
  drop_unsaved(pair.forward, pair.backward);
}

}  // namespace orrery::models
