// What stands before the first layer: tables of tokens, learned positions and segments.

#include <string>

#include "models/operations/ends.hpp"

namespace orrery::models {

void Ends::norm(BlockBuilder& block, std::string_view name, OperandId in, OperandId out) const {
  const std::string full{name};
  Operation& op =
      block.add(OpKind::norm, name, {in, vector(block, full + ".weight", Role::parameter)}, {out});
  if (has_norm_bias(inputs.model)) {
    block.read(op, vector(block, full + ".bias", Role::parameter));
  }
}

void Ends::norm_backward(BlockBuilder& block, std::string_view name, OperandId gradient_out,
                         OperandId saved_in, OperandId gradient_in) const {
  const std::string full{name};
  const OperandId weight = vector(block, full + ".weight", Role::parameter);
  const OperandId weight_gradient = vector(block, full + ".weight.grad", Role::gradient);
  Operation& op = block.add(OpKind::norm_backward, full + ".backward",
                            {gradient_out, saved_in, weight}, {gradient_in, weight_gradient});
  op.dtype = storage;
  if (has_norm_bias(inputs.model)) {
    block.write(op, vector(block, full + ".bias.grad", Role::gradient));
  }
}

namespace {

Block embedding_of_tokens(const Ends& ends) {
  const Model& model = ends.inputs.model;
  BlockBuilder block{"embedding.forward", Pass::forward};
  const OperandId batch =
      block.operand("tokens", Role::batch, DType::int64, {1, 1, ends.shares.tokens});
  const OperandId words = ends.table(block, "embedding.weight", Role::parameter, ends.shares.vocab);
  const OperandId y = ends.rows(block, "y", Role::output);
  const OperandId out = model.embedding_norm ? ends.rows(block, "embedding.out", Role::saved) : y;
  Operation& op = block.add(OpKind::embedding, "embedding", {batch, words}, {out});
  op.partial_sum = true;
  // One row of the table is read for each row written; positions and segments are added on the way.
  op.bytes = ends.all_rows(ends.storage) + block.at(out).bytes() + block.at(batch).bytes();
  if (const std::int64_t rows = position_rows(model); rows > 0) {
    op.reads.push_back(ends.table(block, "positions.weight", Role::parameter, rows));
  }
  if (model.token_types > 0) {
    op.reads.push_back(ends.table(block, "token_types.weight", Role::parameter, model.token_types));
  }
  if (model.embedding_norm) ends.norm(block, "embedding_norm", out, y);
  return block.finish();
}

Block gradients_of_tables(const Ends& ends) {
  const Model& model = ends.inputs.model;
  const bool separate = ends.inputs.software.accumulation == Accumulation::separate;
  BlockBuilder block{"embedding.backward", Pass::backward};
  OperandId dy = ends.rows(block, "y.grad", Role::input);
  if (model.embedding_norm) {
    const OperandId below = ends.rows(block, "embedding.out.grad", Role::temporary);
    ends.norm_backward(block, "embedding_norm", dy, ends.rows(block, "embedding.out", Role::saved),
                       below);
    dy = below;
  }
  const OperandId batch =
      block.operand("tokens", Role::batch, DType::int64, {1, 1, ends.shares.tokens});
  const OperandId words =
      ends.table(block, "embedding.weight.grad", Role::gradient, ends.shares.vocab);
  const OperandId fresh =
      separate ? block.operand("embedding.weight.fresh", Role::temporary, ends.storage,
                               {1, ends.shares.vocab, ends.shares.hidden})
               : words;
  Operation& op = block.add(OpKind::embedding_backward, "embedding.backward", {batch, dy}, {fresh});
  op.full_sequence = {dy};
  // The rows that occur are read and written; a separate accumulation walks the dense gradient.
  op.bytes = block.at(dy).bytes() + ends.all_rows(block.at(fresh).dtype) * 2;
  if (const std::int64_t rows = position_rows(model); rows > 0) {
    op.writes.push_back(ends.table(block, "positions.weight.grad", Role::gradient, rows));
  }
  if (model.token_types > 0) {
    op.writes.push_back(
        ends.table(block, "token_types.weight.grad", Role::gradient, model.token_types));
  }
  if (separate) {
    block.add(OpKind::accumulate, "embedding.accumulate", {fresh, words}, {words});
  }
  return block.finish();
}

}  // namespace

BlockPair embedding_blocks(const BlockInputs& inputs) {
  const Ends ends{inputs};
  return {embedding_of_tokens(ends), gradients_of_tables(ends)};
}

}  // namespace orrery::models
