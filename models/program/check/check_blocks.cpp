#include <fmt/format.h>

#include <algorithm>

#include "models/program/check/check.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// Checks one block's operations in order.
class BlockCheck {
 public:
  BlockCheck(const Program& program, const Block& block)
      : program_{program}, block_{block}, written_(block.operands.size(), false) {}

  void run() {
    for (std::size_t i = 0; i < block_.operations.size(); ++i) {
      const Operation& op = block_.operations[i];
      for (const OpId id : op.after) waits(op, i, id);
      for (const OperandId id : op.reads) reads(op, id);
      for (const OperandId id : op.writes) {
        exists(op, id);
        written_[id] = true;
      }
      const bool joins = op.kind == OpKind::collective;
      if (joins && op.communicator() >= program_.communicators.size()) {
        refuse(op, "has no communicator");
      }
    }
  }

 private:
  [[noreturn]] void refuse(const Operation& op, const std::string& problem) const {
    throw ContractError{fmt::format("block {} operation {} {}", block_.name, op.name, problem)};
  }

  void waits(const Operation& op, std::size_t i, OpId id) const {
    if (id == block_input || id < i) return;
    refuse(op, fmt::format("waits for operation {}, which is not earlier", id));
  }

  void exists(const Operation& op, OperandId id) const {
    if (id < block_.operands.size()) return;
    refuse(op, fmt::format("uses operand {}, there are {}", id, block_.operands.size()));
  }

  /// Temporaries and outputs are written in the block before they are read.
  void reads(const Operation& op, OperandId id) const {
    exists(op, id);
    const Role role = block_.operands[id].role;
    if (written_[id] || (role != Role::temporary && role != Role::output)) return;
    refuse(op, "reads " + block_.operands[id].name + " before it is written");
  }

  const Program& program_;
  const Block& block_;
  std::vector<bool> written_;
};

bool writes(const Block& block, OperandId id) {
  return std::ranges::any_of(block.operations, [&](const Operation& op) {
    return std::ranges::find(op.writes, id) != op.writes.end();
  });
}

/// Each saved operand of backward was saved by forward under the same name, or is forward's input.
void check_saved(const Block& forward, const Block& backward) {
  for (const Operand& each : backward.operands) {
    if (each.role != Role::saved) continue;
    const auto refuse = [&](const std::string& problem) {
      throw ContractError{fmt::format("block {}: saved {} {}", backward.name, each.name, problem)};
    };
    const auto kept = forward.find(each.name);
    if (!kept) refuse("is unknown to " + forward.name);
    const Operand& source = forward.operands[*kept];
    const bool there =
        source.role == Role::input || (source.role == Role::saved && writes(forward, *kept));
    if (!there) refuse("is not saved by " + forward.name);
    if (source.dtype != each.dtype || source.shape != each.shape) {
      refuse("has another shape in " + forward.name);
    }
  }
}

/// Each delayed operand of the weight gradients was made by backward under the same name, or is
/// backward's input.
void check_delayed(const Block& backward, const Block& weights) {
  for (const Operand& each : weights.operands) {
    if (each.role != Role::delayed) continue;
    const auto made = backward.find(each.name);
    const bool there =
        made && (backward.operands[*made].role == Role::input ||
                 (backward.operands[*made].role == Role::delayed && writes(backward, *made)));
    if (there) continue;
    throw ContractError{fmt::format("block {}: delayed {} is not made by {}", weights.name,
                                    each.name, backward.name)};
  }
}

/// Each carried operand is written by some block, and has one shape in all.
void check_carried(const Program& program) {
  for (const Operand* const each : program.carried()) {
    bool written = false;
    for (const Block& block : program.blocks) {
      const auto own = block.find(each->name);
      if (!own || block.operands[*own].role != Role::carried) continue;
      const Operand& here = block.operands[*own];
      written = written || writes(block, *own);
      if (here.shape == each->shape && here.dtype == each->dtype) continue;
      throw ContractError{
          fmt::format("block {}: carried {} has another shape", block.name, each->name)};
    }
    if (!written) throw ContractError{fmt::format("no block writes the carried {}", each->name)};
  }
}

}  // namespace

void check_blocks(const Program& program) {
  for (const Block& block : program.blocks) BlockCheck{program, block}.run();
  check_carried(program);
  for (const LayerKind& each : program.kinds) {
    const std::uint32_t last =
        std::max({each.forward, each.backward, each.weight_gradient.value_or(0)});
    ensure(last < program.blocks.size(), "a kind of layer lacks its blocks");
    check_saved(program.blocks[each.forward], program.blocks[each.backward]);
    if (!each.weight_gradient) continue;
    check_saved(program.blocks[each.forward], program.blocks[*each.weight_gradient]);
    check_delayed(program.blocks[each.backward], program.blocks[*each.weight_gradient]);
  }
}

}  // namespace orrery::models
