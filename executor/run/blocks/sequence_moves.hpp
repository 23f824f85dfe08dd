#pragma once
// Packing for the collectives of context parallelism, which move some columns of their rows: the
// keys and values of [queries, keys, values] rows, or some heads' columns where an all-to-all
// changes the cut from tokens to heads (Ulysses). A fabric moves contiguous memory only, so columns
// are packed before the call and unpacked after it.

#include <cstdint>
#include <vector>

#include "executor/device/device.hpp"
#include "models/program/program.hpp"

namespace orrery::executor {

/// A strided copy: `rows` pieces of `bytes` each, which begin `from_step` and `to_step` apart.
struct RowsMove {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::int64_t rows = 1, bytes = 0;
  std::int64_t from_step = 0, to_step = 0;  // bytes
};

/// The buffers of one collective, and the copies before and after it.
struct SequenceMoves {
  std::vector<RowsMove> before = {}, after = {};
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;
  std::int64_t count = 0;  // elements, as CollectiveCall::count; all that a transfer sends
};

/// The moves of a collective on the context lane, bound to `from` and `to`; `scratch` is the memory
/// that the block's plan reserves for packing.
SequenceMoves sequence_moves(const models::Program& program, const models::Block& block,
                             const models::Operation& op, const View& from, const View& to,
                             std::byte* scratch);

}  // namespace orrery::executor
