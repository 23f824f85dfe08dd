#pragma once
// A block: a straight-line list of operations on formal operands, shared by all layers and
// micro-batches that it is bound to. It states what to run; when, and on which layers and buffers,
// is stated by instructions (instruction.hpp).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/program/operation.hpp"

namespace orrery::models {

struct Block {
  std::string name;  // "layer.forward"
  std::vector<Operand> operands;
  std::vector<Operation> operations;

  std::optional<OperandId> find(std::string_view operand) const;
  /// The operand of this name, appended if there is none.
  OperandId add(Operand operand);
  /// Removes all operands except these, and renumbers them in the operations.
  void keep(const std::vector<bool>& kept);
  Flops flops() const;
  /// Bytes of all operands with this role.
  Bytes bytes(Role role) const;
  /// Peak bytes of live temporaries, each alive from its first use to its last.
  Bytes temporary_peak() const;
};

/// Replaces each operand that an operation reads, writes, needs or makes by `moved` of it.
template <class Moved>
void move_operands(Operation& op, Moved moved) {
  for (auto* ids : {&op.reads, &op.writes}) {
    for (OperandId& id : *ids) id = moved(id);
  }
  for (auto* uses : {&op.needs, &op.makes}) {
    for (OperandUse& each : *uses) each.operand = moved(each.operand);
  }
}

/// Turns saved operands of forward into temporaries where backward does not list them as saved.
void drop_unsaved(Block& forward, const Block& backward);

/// Fills `after` from reads and writes: an operation waits for the last writer of what it reads
/// and for the readers and writer of what it overwrites, where they run on another queue.
/// Recomputation belongs to backward: it starts no earlier than the gradient arrives.
void link(Block& block);

}  // namespace orrery::models
