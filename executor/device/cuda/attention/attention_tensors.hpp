#pragma once
// The operands of an attention as strided tensors [batch, heads, seq, head_dim] over the Program's
// own memory, for libraries that take extents and strides. A row of `qkv` has [query heads | key
// heads | value heads], head_dim elements each; a row of the output has the query heads; the
// log-sum-exp of the scaled scores is [batch, heads, seq] in fp32. Nothing is copied.

#include <array>
#include <cstdint>

#include "models/program/block.hpp"

namespace orrery::executor::cuda {

/// One tensor inside its operand: extents, strides and the offset of its first element, in
/// elements.
struct HeadTensor {
  std::array<std::int64_t, 4> extents{}, strides{};
  std::int64_t first = 0;
};

struct AttentionTensors {
  HeadTensor query, key, value;  // in qkv; their gradients in its gradient
  HeadTensor context;            // in the output and its gradient
  HeadTensor log_sum;            // [batch, heads, seq, 1]

  explicit AttentionTensors(const models::AttentionShape& of) {
    const std::int64_t columns = (of.heads + 2 * of.kv_heads) * of.head_dim;
    const auto heads = [&](std::int64_t count, std::int64_t in_row, std::int64_t first) {
      return HeadTensor{.extents = {of.batch, count, of.seq, of.head_dim},
                        .strides = {of.seq * in_row, of.head_dim, in_row, 1},
                        .first = first};
    };
    query = heads(of.heads, columns, 0);
    key = heads(of.kv_heads, columns, of.heads * of.head_dim);
    value = heads(of.kv_heads, columns, (of.heads + of.kv_heads) * of.head_dim);
    context = heads(of.heads, of.heads * of.head_dim, 0);
    log_sum = {.extents = {of.batch, of.heads, of.seq, 1},
               .strides = {of.heads * of.seq, of.seq, 1, 1}};
  }
};

}  // namespace orrery::executor::cuda
