#pragma once
// A block: a straight-line list of operations with formal operands, shared by all the layers and
// micro-batches that it is bound to. It says what to run; the schedule says when and on what.

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
  Flops flops() const;
  /// Bytes of all operands of a role.
  Bytes bytes(Role role) const;
  /// Highest sum of temporaries alive at once, each from its first write to its last use.
  Bytes temporary_peak() const;
};

/// What forward writes and its backward does not ask for is not kept: it becomes a temporary.
void drop_unsaved(Block& forward, const Block& backward);

/// Fills `after` from reads and writes: an operation waits for the last writer of what it reads
/// and for the readers and writer of what it overwrites, where they run on another queue.
/// Recomputation belongs to backward: it begins no earlier than the gradient arrives.
void link(Block& block);

}  // namespace orrery::models
