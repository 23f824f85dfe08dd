#pragma once
// What collectives of ranks that share a sequence move: of rows of queries, keys and values the
// columns of the last two, and between tokens and heads the columns of some heads. The fabric knows
// nothing of columns, so they are packed before and put in their places after.

#include <cstdint>
#include <vector>

#include "executor/device/device.hpp"
#include "models/program/program.hpp"

namespace orrery::executor {

/// Pieces of equal size, from one step to the next.
struct RowsMove {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::int64_t rows = 1, bytes = 0;
  std::int64_t from_step = 0, to_step = 0;  // bytes
};

struct SequenceMoves {
  std::vector<RowsMove> before = {}, after = {};
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;
  std::int64_t count = 0;  // elements, as a CollectiveCall has them; of a transfer all
};

/// A bound collective of a block on the context lane; `scratch` is what its plan has for it.
SequenceMoves sequence_moves(const models::Program& program, const models::Block& block,
                             const models::Operation& op, const View& from, const View& to,
                             std::byte* scratch);

}  // namespace orrery::executor
