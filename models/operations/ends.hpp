#pragma once
// What the two ends of a model share: operands before the first layer and behind the last.

#include <string>
#include <string_view>
#include <utility>

#include "models/operations/linear.hpp"

namespace orrery::models {

struct Ends {
  const BlockInputs& inputs;
  Shares shares{inputs};
  DType storage = storage_dtype(inputs.plan.precision);
  DType gradient = gradient_dtype(inputs.plan, inputs.software);

  /// [S, h]
  OperandId rows(BlockBuilder& block, std::string_view name, Role role) const {
    return block.operand(name, role, storage, {1, shares.rows, shares.hidden});
  }
  /// [h], as a norm's weight or bias, or the gradient of one.
  OperandId vector(BlockBuilder& block, std::string_view name, Role role) const {
    return block.operand(name, role, role == Role::gradient ? gradient : storage,
                         {1, 1, shares.hidden});
  }
  /// [count, h]: a table of learned rows beside the vocabulary's, or its gradient.
  OperandId table(BlockBuilder& block, std::string_view name, Role role, std::int64_t count) const {
    return block.operand(name, role, role == Role::gradient ? gradient : storage,
                         {1, count, shares.hidden});
  }
  /// [S, e]: rows as wide as the vocabulary's.
  OperandId narrow_rows(BlockBuilder& block, std::string_view name, Role role) const {
    return block.operand(name, role, storage, {1, shares.rows, shares.embedding});
  }
  /// [count, e]: the vocabulary's table, or its gradient.
  OperandId words(BlockBuilder& block, std::string_view name, Role role) const {
    return block.operand(name, role, role == Role::gradient ? gradient : storage,
                         {1, shares.vocab, shares.embedding});
  }
  /// One row of e values for every token, on whatever rank it is kept.
  Bytes all_rows(DType dtype) const {
    return Bytes{multiplied<Bytes>(shares.tokens, shares.embedding, bits(dtype)).count() / 8};
  }
  /// A matrix that every rank of the tensor group has whole, between tokens' rows and the layers.
  Linear projection(std::string name, std::int64_t in, std::int64_t out) const {
    return {.name = std::move(name),
            .in = in,
            .out = out,
            .cut = LinearCut::whole,
            .rows = shares.rows,
            .low_precision = false};
  }
  /// out = norm(in) with weight and, where the model has them, bias of that name.
  void norm(BlockBuilder& block, std::string_view name, OperandId in, OperandId out) const;
  void norm_backward(BlockBuilder& block, std::string_view name, OperandId gradient_out,
                     OperandId saved_in, OperandId gradient_in) const;
};

}  // namespace orrery::models
