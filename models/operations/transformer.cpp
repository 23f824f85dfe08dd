#include "models/operations/transformer.hpp"

#include "models/plan/precision_formats.hpp"

namespace orrery::models {

TransformerBuilder::TransformerBuilder(const BlockInputs& inputs, std::string name, Pass pass)
    : inputs_{inputs},
      storage_{storage_dtype(inputs.plan.formats.precision)},
      gradient_{gradient_dtype(inputs.plan, inputs.software)},
      block_{std::move(name), pass, mesh_of(inputs.plan)},
      linear_{block_, inputs_} {}

OperandId TransformerBuilder::rows(std::string_view name, Role role, DType dtype) {
  return block_.operand(name, role, dtype, {1, tokens(), inputs_.model.hidden},
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

void TransformerBuilder::norm(const std::string& name, OperandId in, OperandId out) {
  Operation& op =
      block_.add(OpKind::norm, name, {in, parameter(scale_of(name + ".weight"))}, {out});
  op.mutable_norm() = inputs_.model.norms.kind;
  op.mutable_epsilon() = inputs_.model.norms.epsilon;
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
  op.mutable_norm() = inputs_.model.norms.kind;
  op.mutable_epsilon() = inputs_.model.norms.epsilon;
  if (has_norm_bias(inputs_.model)) {
    block_.write(op, gradient(bias_of(name + ".bias"), gradient_out));
  }
}

}  // namespace orrery::models
