#include "models/operations/transformer.hpp"

#include "models/plan/derived.hpp"

namespace orrery::models {

BlockScope::BlockScope(const BlockInputs& of, std::string name, Pass pass)
    : inputs{of},
      storage{activation_dtype(of.plan)},
      gradients{gradient_dtype(of.plan, of.software)},
      block{std::move(name), pass, mesh_of(of.plan)},
      linear{block, inputs} {}

OperandId TransformerBuilder::rows(std::string_view name, Role role, DType dtype) {
  return block_.operand(name, role, dtype, {1, tokens(), hidden()}, rows_layout(inputs_.plan));
}

OperandId TransformerBuilder::carried_rows(std::string_view name, std::int64_t seq_len) {
  return block_.operand(name, Role::carried, storage_,
                        {1, inputs_.plan.batch.micro * seq_len, hidden()},
                        rows_layout(inputs_.plan));
}

OperandId TransformerBuilder::narrow_rows(std::string_view name, Role role) {
  return block_.operand(name, role, storage_, {1, tokens(), embedding_width(inputs_.model)},
                        rows_layout(inputs_.plan));
}

OperandId TransformerBuilder::features(std::string_view name, Role role, std::int64_t columns,
                                       const Sharding& layout) {
  return block_.operand(name, role, storage_, {1, tokens(), columns}, of_tokens(layout));
}

OperandId TransformerBuilder::unfused_norm(const std::string& name, OperandId in) {
  const Operand rows = block_.at(in);
  return block_.operand(name + ".unfused", Role::saved, unfused_dtype(), rows.uncut, rows.sharding);
}

void TransformerBuilder::norm(const std::string& name, OperandId in, OperandId out) {
  Operation& op =
      block_.add(OpKind::norm, name, {in, parameter(scale_of(name + ".weight"))}, {out});
  set_norm(op);
  if (unfused_norms()) save_besides(op, unfused_norm(name, in));
  if (has_norm_bias(inputs_.model)) block_.read(op, parameter(bias_of(name + ".bias")));
}

void TransformerBuilder::norm_backward(const std::string& name, OperandId gradient_out,
                                       OperandId saved_in, std::optional<OperandId> residual,
                                       OperandId out) {
  const ModelTensor weight = scale_of(name + ".weight");
  const OperandId of = parameter(weight);
  const OperandId weight_gradient = gradient(weight, gradient_out);
  Operation& op = block_.add(OpKind::norm_backward, name + ".backward",
                             {gradient_out, saved_in, of}, {out, weight_gradient});
  if (residual) block_.read(op, *residual);
  op.dtype = storage_;
  set_norm(op);
  if (unfused_norms()) read_besides(op, unfused_norm(name, saved_in));
  if (has_norm_bias(inputs_.model)) {
    block_.write(op, gradient(bias_of(name + ".bias"), gradient_out));
  }
}

OperandId TransformerBuilder::in_8_bits(OperandId of, Role role) {
  const Operand wide = block_.at(of);
  return block_.operand(wide.name + ".narrow", role, DType::fp8, wide.uncut, wide.sharding);
}

Role TransformerBuilder::role_of_inner() const {
  return inputs_.plan.formats.low_precision_activation ? Role::temporary : Role::saved;
}

void TransformerBuilder::keep_inner(OperandId inner) {
  if (!inputs_.plan.formats.low_precision_activation) return;
  block_.add(OpKind::quantise, block_.at(inner).name + ".narrow", {inner},
             {in_8_bits(inner, Role::saved)});
}

void TransformerBuilder::restore_inner(OperandId inner) {
  if (!inputs_.plan.formats.low_precision_activation) return;
  block_.add(OpKind::quantise, block_.at(inner).name + ".widen", {in_8_bits(inner, Role::saved)},
             {inner});
}

}  // namespace orrery::models
