#include "models/operations/parts/attention_operands.hpp"

namespace orrery::models {

OperandId AttentionOperands::log_sum_exp() {
  return block_.operand(
      crossing_.name("attention.lse"), Role::saved, state_dtype(inputs_.plan.formats.precision),
      {inputs_.plan.batch.micro, attention_.heads, inputs_.plan.batch.seq_len}, lse_layout());
}

AttentionShape AttentionOperands::attention_shape() const {
  const auto [ranks, pieces] = split();
  return {.batch = inputs_.plan.batch.micro,
          .seq = inputs_.plan.batch.seq_len / pieces,
          .heads = local_heads(attention_.heads) / ranks,
          .kv_heads = local_heads(attention_.kv_heads) / ranks,
          .head_dim = attention_.head_dim,
          .causal = inputs_.model.causal && !attention_.encodes && crossing_.keys == 0,
          .window = attention_.window,
          .keys = crossing_.keys,
          .value_dim = attention_.value_dim,
          .score_factor = inputs_.model.embedding.rotary.score_factor,
          .chunk = attention_.chunk,
          .gated = attention_.gated,
          .crosses = crossing_.keys > 0};
}

void AttentionOperands::read_sinks(Operation& op) {
  if (!attention_.sinks) return;
  block_.read(op, parameter(sinks()));
  op.mutable_attention().sinks = true;
}

void AttentionOperands::write_sinks_gradient(Operation& op, OperandId gradient_out) {
  if (!attention_.sinks) return;
  read_sinks(op);
  const AxisSet tokens = block_.at(gradient_out).sharding.axes(Dimension::rows);
  block_.write(op, block_.gradient(sinks(), gradient_, tokens));
}

}  // namespace orrery::models
