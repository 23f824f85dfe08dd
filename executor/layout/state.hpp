#pragma once
// What a training state consists of: the tensors of the unsharded model, and which elements of them
// a rank updates.

#include <cstdint>
#include <string>

#include "models/program/operand.hpp"

namespace orrery::executor {

/// A tensor of the unsharded model: "layer12.qkv.weight", [rows, columns] row-major. Linear weights
/// are [in, out] except the vocabulary head's, which is [vocab, hidden] like the embedding's. It
/// does not include the padding of a vocabulary. The list of tensors is the same on every rank.
struct StateTensor {
  std::string name;
  std::int64_t rows = 1, columns = 1;
  models::Initial initial{};

  std::int64_t elements() const { return rows * columns; }
};

/// What is kept of each element; its gradient only during a step.
enum class StateKind : std::uint8_t { parameter, first_moment, second_moment, gradient };

/// Elements of a global tensor that this rank updates, consecutive there and here. Of the ranks
/// that update the same ones, exactly one is the writer.
struct StateRun {
  std::uint32_t tensor = 0;
  std::int64_t offset = 0;  // in the global tensor
  std::int64_t count = 0;
  std::int64_t local = 0;  // first element here, for read_state and load_state
  bool writer = false;
};

}  // namespace orrery::executor
