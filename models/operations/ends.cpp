// What stands before the first layer and behind the last: embedding, and head with loss.

#include <cmath>

#include "models/operations/linear.hpp"

namespace orrery::models {

namespace {

/// Operands and choices that the two ends share.
struct Ends {
  const BlockInputs& inputs;
  Shares shares{inputs};
  DType storage = storage_dtype(inputs.plan.precision);
  DType gradient = inputs.software.gradient;

  OperandId rows(BlockBuilder& block, std::string_view name, Role role) const {
    return block.operand(name, role, storage, {1, shares.rows, shares.hidden});
  }
  OperandId vector(BlockBuilder& block, std::string_view name, Role role) const {
    return block.operand(name, role, role == Role::gradient ? gradient : storage,
                         {1, 1, shares.hidden});
  }
  /// A table of learned rows and, in backward, its gradient.
  OperandId table(BlockBuilder& block, std::string_view name, std::int64_t count) const {
    return block.operand(name, Role::parameter, storage, {1, count, shares.hidden});
  }
};

Block build_embedding_forward(const Ends& ends) {
  const Model& model = ends.inputs.model;
  BlockBuilder block{"embedding.forward", Pass::forward};
  const OperandId batch =
      block.operand("tokens", Role::batch, DType::int64, {1, 1, ends.shares.tokens});
  const OperandId words = ends.table(block, "embedding.weight", ends.shares.vocab);
  const OperandId y = ends.rows(block, "y", Role::output);
  Operation& op = block.add(OpKind::embedding, "embedding", {batch, words}, {y});
  op.partial_sum = true;
  // One row of the table is read for each row written; positions and segments are added on the way.
  op.bytes = Bytes{2 * block.at(y).bytes().count()} + block.at(batch).bytes();
  if (model.positions == Positions::learned) {
    op.reads.push_back(ends.table(block, "positions.weight", model.max_positions));
  }
  if (model.token_types > 0) {
    op.reads.push_back(ends.table(block, "token_types.weight", model.token_types));
  }
  if (model.embedding_norm) {
    const OperandId weight = ends.vector(block, "embedding_norm.weight", Role::parameter);
    const OperandId bias = ends.vector(block, "embedding_norm.bias", Role::parameter);
    block.add(OpKind::norm, "embedding_norm", {y, weight, bias}, {y});
  }
  return block.finish();
}

Block build_embedding_backward(const Ends& ends) {
  const Model& model = ends.inputs.model;
  BlockBuilder block{"embedding.backward", Pass::backward};
  const OperandId dy = ends.rows(block, "y.grad", Role::input);
  if (model.embedding_norm) {
    const OperandId weight = ends.vector(block, "embedding_norm.weight", Role::parameter);
    block.add(OpKind::norm_backward, "embedding_norm.backward", {dy, weight},
              {dy, ends.vector(block, "embedding_norm.weight.grad", Role::gradient)});
  }
  const OperandId batch =
      block.operand("tokens", Role::batch, DType::int64, {1, 1, ends.shares.tokens});
  const OperandId words =
      block.operand("embedding.weight.grad", Role::gradient, ends.gradient,
                    {1, ends.shares.vocab, ends.shares.hidden});
  Operation& op = block.add(OpKind::embedding_backward, "embedding.backward", {batch, dy}, {words});
  op.full_sequence = {dy};
  // The rows that occur are read and written; a separate accumulation walks the dense gradient.
  op.bytes = Bytes{3 * block.at(dy).bytes().count()};
  if (model.positions == Positions::learned) {
    op.writes.push_back(block.operand("positions.weight.grad", Role::gradient, ends.gradient,
                                      {1, model.max_positions, ends.shares.hidden}));
  }
  if (ends.inputs.software.accumulation == Accumulation::separate) {
    const OperandId fresh =
        block.operand("embedding.weight.fresh", Role::temporary, ends.storage,
                      {1, ends.shares.vocab, ends.shares.hidden});
    block.add(OpKind::accumulate, "embedding.accumulate", {fresh, words}, {words});
  }
  return block.finish();
}

Linear vocabulary(const Ends& ends) {
  return {.name = "head", .in = ends.shares.hidden, .out = ends.shares.vocab,
          .bias = ends.inputs.model.head_bias, .low_precision = false};
}

/// Bytes that the loss moves for every logit, as the stack's kernels do.
Bytes loss_bytes(const Ends& ends, double per_logit) {
  const double logits = static_cast<double>(ends.shares.tokens * ends.shares.vocab);
  return Bytes{std::llround(logits * per_logit)};
}

Block build_head_forward(const Ends& ends) {
  const Model& model = ends.inputs.model;
  BlockBuilder block{"head.forward", Pass::forward};
  LinearBuilder linear{block, ends.inputs, ends.shares};
  OperandId in = ends.rows(block, "x", Role::input);
  if (model.final_norm) {
    const OperandId weight = ends.vector(block, "final_norm.weight", Role::parameter);
    const OperandId out = ends.rows(block, "final_norm.out", Role::saved);
    Operation& op = block.add(OpKind::norm, "final_norm", {in, weight}, {out});
    if (model.norm_bias) {
      op.reads.push_back(ends.vector(block, "final_norm.bias", Role::parameter));
    }
    in = out;
  }
  const std::int64_t tokens = ends.shares.tokens;
  const OperandId logits =
      block.operand("logits", Role::temporary, ends.storage, {1, tokens, ends.shares.vocab});
  const OperandId labels = block.operand("labels", Role::batch, DType::int64, {1, 1, tokens});
  const OperandId softmax =
      block.operand("softmax", Role::saved, DType::fp32, {1, tokens, ends.shares.vocab});
  linear.forward(vocabulary(ends), in, logits);
  Operation& loss = block.add(OpKind::cross_entropy, "loss", {logits, labels}, {softmax});
  loss.bytes = loss_bytes(ends, ends.inputs.software.kernels.loss_forward_bytes);
  return block.finish();
}

Block build_head_backward(const Ends& ends) {
  const Model& model = ends.inputs.model;
  BlockBuilder block{"head.backward", Pass::backward};
  LinearBuilder linear{block, ends.inputs, ends.shares};
  const std::int64_t tokens = ends.shares.tokens;
  const OperandId softmax =
      block.operand("softmax", Role::saved, DType::fp32, {1, tokens, ends.shares.vocab});
  const OperandId labels = block.operand("labels", Role::batch, DType::int64, {1, 1, tokens});
  const OperandId d_logits =
      block.operand("logits.grad", Role::temporary, ends.storage, {1, tokens, ends.shares.vocab});
  Operation& loss = block.add(OpKind::cross_entropy_backward, "loss.backward", {softmax, labels},
                              {d_logits});
  loss.bytes = loss_bytes(ends, ends.inputs.software.kernels.loss_backward_bytes);
  const OperandId x = ends.rows(block, "x", Role::saved);
  const OperandId dx = ends.rows(block, "x.grad", Role::output);
  if (!model.final_norm) {
    linear.backward(vocabulary(ends), x, d_logits, dx);
    return block.finish();
  }
  const OperandId normed = ends.rows(block, "final_norm.out", Role::saved);
  const OperandId d_normed = ends.rows(block, "final_norm.out.grad", Role::temporary);
  linear.backward(vocabulary(ends), normed, d_logits, d_normed);
  const OperandId weight = ends.vector(block, "final_norm.weight", Role::parameter);
  Operation& op =
      block.add(OpKind::norm_backward, "final_norm.backward", {d_normed, x, weight},
                {dx, ends.vector(block, "final_norm.weight.grad", Role::gradient)});
  op.dtype = ends.storage;
  if (model.norm_bias) {
    op.writes.push_back(ends.vector(block, "final_norm.bias.grad", Role::gradient));
  }
  return block.finish();
}

}  // namespace

BlockPair embedding_blocks(const BlockInputs& inputs) {
  const Ends ends{inputs};
  return {build_embedding_forward(ends), build_embedding_backward(ends)};
}

BlockPair head_blocks(const BlockInputs& inputs) {
  const Ends ends{inputs};
  return {build_head_forward(ends), build_head_backward(ends)};
}

}  // namespace orrery::models
