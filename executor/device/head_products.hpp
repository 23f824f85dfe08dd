#pragma once
// The matrix products of unfused attention, one per head, and where their matrices are inside the
// operands of the whole attention: queries, keys and values in one, or of cross-attention in two.

#include <cstdint>

#include "models/program/block.hpp"

namespace orrery::executor {

/// What a matrix of such a product is: a head's queries, keys or values, its [seq, keys] scores,
/// weights or their gradients (square), or its output (context).
enum class HeadMatrix : std::uint8_t { query, key, value, square, context };

struct HeadProducts {
  models::AttentionShape shape;
  HeadMatrix a, b, c;
  std::int64_t group;  // query heads that share a key-value head

  /// Errors  a product that does not say which: ContractError
  explicit HeadProducts(const models::Operation& operation);

  /// Keys that a query attends to.
  std::int64_t keys() const { return shape.crosses ? shape.keys : shape.seq; }
  /// Elements from a row of the matrix to the next.
  std::int64_t row(HeadMatrix of) const;
  /// Offset of one head of one sequence in its operand, in elements.
  std::int64_t offset(HeadMatrix of, std::int64_t sequence, std::int64_t head) const;
  /// Gradients of a group's query heads add up in their key-value head: does this head's?
  bool accumulates(std::int64_t head) const {
    return (c == HeadMatrix::key || c == HeadMatrix::value) && head % group != 0;
  }
};

}  // namespace orrery::executor
