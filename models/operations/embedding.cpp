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

/// Are positions or segments added to what the tokens' table gives?
bool adds_rows(const Model& model) {
  return position_rows(model) > 0 || model.token_types > 0;
}

/// Bytes of the positions that a rank adds, each once for all its sequences.
Bytes rows_of_positions(const Ends& ends, DType dtype) {
  return Bytes{ends.shares.rows / ends.shares.sequences * ends.shares.hidden * bits(dtype) / 8};
}

/// Every rank adds to its own rows, behind the sum over the vocabulary's shards.
void add_rows(const Ends& ends, BlockBuilder& block, OperandId words, OperandId out) {
  const Model& model = ends.inputs.model;
  Operation& op = block.add(OpKind::add, "positions", {words}, {out});
  if (const std::int64_t rows = position_rows(model); rows > 0) {
    op.reads.push_back(ends.table(block, "positions.weight", Role::parameter, rows));
    op.bytes += rows_of_positions(ends, ends.storage);
  }
  if (model.token_types > 0) {
    block.read(op, ends.table(block, "token_types.weight", Role::parameter, model.token_types));
  }
}

void gradients_of_rows(const Ends& ends, BlockBuilder& block, OperandId dy) {
  const Model& model = ends.inputs.model;
  Operation& op = block.add(OpKind::add_backward, "positions.backward", {dy}, {});
  op.dtype = ends.storage;
  if (const std::int64_t rows = position_rows(model); rows > 0) {
    op.writes.push_back(ends.table(block, "positions.weight.grad", Role::gradient, rows));
    op.bytes += rows_of_positions(ends, ends.gradient) * 2;
  }
  if (model.token_types > 0) {
    block.write(op,
                ends.table(block, "token_types.weight.grad", Role::gradient, model.token_types));
  }
}

/// Tokens' rows, as wide as the layers.
void look_up(const Ends& ends, BlockBuilder& block, OperandId batch, OperandId words,
             OperandId rows) {
  const bool projects = projects_embeddings(ends.inputs.model);
  const OperandId found = projects ? ends.narrow_rows(block, "narrow", Role::saved) : rows;
  Operation& op = block.add(OpKind::embedding, "embedding", {batch, words}, {found});
  op.partial_sum = true;
  // One row of the table is read for each row written.
  op.bytes = ends.all_rows(ends.storage) + block.at(found).bytes() + block.at(batch).bytes();
  if (!projects) return;
  LinearBuilder{block, ends.inputs, ends.shares}.forward(
      ends.projection("project_in", ends.shares.embedding, ends.shares.hidden), found, rows);
}

/// The gradient of what the tables gave, behind the projection.
OperandId gradient_of_narrow(const Ends& ends, BlockBuilder& block, OperandId dy) {
  if (!projects_embeddings(ends.inputs.model)) return dy;
  const OperandId narrow = ends.narrow_rows(block, "narrow.grad", Role::temporary);
  LinearBuilder{block, ends.inputs, ends.shares}.backward(
      ends.projection("project_in", ends.shares.embedding, ends.shares.hidden),
      ends.narrow_rows(block, "narrow", Role::saved), dy, narrow);
  return narrow;
}

Block embedding_of_tokens(const Ends& ends) {
  const Model& model = ends.inputs.model;
  BlockBuilder block{"embedding.forward", Pass::forward};
  const OperandId batch =
      block.operand("tokens", Role::batch, DType::int64, {1, 1, ends.shares.tokens});
  const OperandId words = ends.words(block, "embedding.weight", Role::parameter);
  const OperandId y = ends.rows(block, "y", Role::output);
  const OperandId out = model.embedding_norm ? ends.rows(block, "embedding.out", Role::saved) : y;
  const OperandId rows = adds_rows(model) ? ends.rows(block, "words", Role::temporary) : out;
  look_up(ends, block, batch, words, rows);
  if (adds_rows(model)) add_rows(ends, block, rows, out);
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
  const OperandId words = ends.words(block, "embedding.weight.grad", Role::gradient);
  const OperandId fresh =
      separate ? block.operand("embedding.weight.fresh", Role::temporary, ends.storage,
                               {1, ends.shares.vocab, ends.shares.embedding})
               : words;
  const OperandId rows = gradient_of_narrow(ends, block, dy);
  Operation& op =
      block.add(OpKind::embedding_backward, "embedding.backward", {batch, rows}, {fresh});
  op.full_sequence = {rows};
  // The rows that occur are read and written; a separate accumulation walks the dense gradient.
  op.bytes = block.at(rows).bytes() + ends.all_rows(block.at(fresh).dtype) * 2;
  if (adds_rows(model)) gradients_of_rows(ends, block, dy);
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
