#include "executor/run/blocks/sequence_moves.hpp"

#include <algorithm>

#include "executor/layout/block_plan.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::Collective;
using models::Dimension;
using models::Operand;

/// Moves between operands of which the narrower one has the last columns of the wider one.
SequenceMoves last_columns(Collective kind, const View& from, const View& to, std::byte* scratch) {
  const std::int64_t width = width_of(from.dtype);
  const std::int64_t wide = std::max(from.shape[2], to.shape[2]) * width;
  const std::int64_t narrow = std::min(from.shape[2], to.shape[2]) * width;
  const bool shrinks = kind == Collective::reduce_scatter;
  const std::int64_t rows = shrinks ? to.shape[1] : from.shape[1];
  SequenceMoves moves{.send = from.data, .receive = to.data, .count = rows * narrow / width};
  if (from.shape[2] > to.shape[2]) {
    moves.before.push_back({from.data + wide - narrow, scratch, rows, narrow, wide, narrow});
    moves.send = scratch;
  } else if (from.shape[2] < to.shape[2]) {
    moves.after.push_back({scratch, to.data + wide - narrow, rows, narrow, narrow, wide});
    moves.receive = scratch;
  }
  return moves;
}

/// All-to-all between tokens and heads: each rank has all columns of its own tokens on one side,
/// and its own heads' columns of all tokens on the other. What is sent is packed in the memory of
/// the result.
class TokenHeadAllToAll {
 public:
  TokenHeadAllToAll(const models::Program& program, const View& from, const View& to,
                    std::byte* scratch, const Operand& narrow, const Operand& wide)
      : from_{from},
        to_{to},
        scratch_{scratch},
        splits_{from.shape[1] < to.shape[1]},
        ranks_{program.mesh.degree(models::MeshAxis::context_heads)},
        sequences_{program.step.sequences},
        width_{width_of(from.dtype)},
        tokens_{std::min(from.shape[1], to.shape[1]) / sequences_},
        row_{narrow.shape[2] * width_} {
    const models::Mesh& mesh = program.mesh;
    std::vector<std::int64_t> groups{narrow.uncut[2]};
    if (narrow.sharding.grouped()) {
      groups.assign(narrow.sharding.column_groups.begin(), narrow.sharding.column_groups.end());
    }
    for (const std::int64_t group : groups) {
      narrow_.push_back(local_extent(group, narrow.sharding, Dimension::columns, mesh) * width_);
      ensure(local_extent(group, wide.sharding, Dimension::columns, mesh) * width_ ==
                 narrow_.back() * ranks_,
             "heads are traded in unequal shares");
    }
  }

  SequenceMoves moves() const {
    SequenceMoves made{
        .send = to_.data, .receive = scratch_, .count = sequences_ * tokens_ * row_ / width_};
    if (splits_) {
      columns(from_.data, to_.data, made.before);
      tokens(scratch_, to_.data, made.after);
    } else {
      tokens(from_.data, to_.data, made.before);
      columns(scratch_, to_.data, made.after);
    }
    return made;
  }

 private:
  /// Copies between rows of all columns (this rank's tokens) and one block for each rank, with that
  /// rank's heads' columns.
  void columns(const std::byte* from, std::byte* to, std::vector<RowsMove>& made) const {
    const std::int64_t rows = sequences_ * tokens_;
    for (std::int64_t rank = 0; rank < ranks_; ++rank) {
      std::int64_t wide = 0, narrow = rank * rows * row_;
      for (const std::int64_t group : narrow_) {
        const std::int64_t at = wide + rank * group;
        if (splits_) {
          made.push_back({from + at, to + narrow, rows, group, row_ * ranks_, row_});
        } else {
          made.push_back({from + narrow, to + at, rows, group, row_, row_ * ranks_});
        }
        wide += group * ranks_;
        narrow += group;
      }
    }
  }

  /// Copies between whole sequences, one after another, and one block for each rank, with that
  /// rank's tokens of every sequence.
  void tokens(const std::byte* from, std::byte* to, std::vector<RowsMove>& made) const {
    const std::int64_t bytes = tokens_ * row_;
    for (std::int64_t rank = 0; rank < ranks_; ++rank) {
      for (std::int64_t b = 0; b < sequences_; ++b) {
        const std::int64_t block = (rank * sequences_ + b) * bytes;
        const std::int64_t whole = (b * ranks_ + rank) * bytes;
        made.push_back(
            {from + (splits_ ? block : whole), to + (splits_ ? whole : block), 1, bytes, 0, 0});
      }
    }
  }

  const View &from_, &to_;
  std::byte* scratch_;
  bool splits_;  // from all columns of own tokens to own heads of all tokens
  std::int64_t ranks_, sequences_, width_;
  std::int64_t tokens_, row_;         // tokens of a sequence on one rank; bytes of a narrow row
  std::vector<std::int64_t> narrow_;  // bytes of each column group of a narrow row
};

}  // namespace

SequenceMoves sequence_moves(const models::Program& program, const models::Block& block,
                             const models::Operation& op, const View& from, const View& to,
                             std::byte* scratch) {
  if (op.collective() != Collective::all_to_all) {
    return last_columns(op.collective(), from, to, scratch);
  }
  const Operand& read = block.operands[op.reads.front()];
  const Operand& written = block.operands[op.writes.front()];
  const bool splits = from.shape[1] < to.shape[1];
  return TokenHeadAllToAll{
      program, from, to, scratch, splits ? written : read, splits ? read : written}
      .moves();
}

}  // namespace orrery::executor
