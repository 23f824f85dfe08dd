#include "models/operations/parts/mlp.hpp"

namespace orrery::models {

Linear MlpBuilder::up() const {
  return linear_of(matrix_of(matrices_of(mlp_, hidden(), prefix_), prefix_ + "up"),
                   mlp_layout(mlp_));
}

Linear MlpBuilder::down() const {
  return linear_of(matrix_of(matrices_of(mlp_, hidden(), prefix_), prefix_ + "down"), by_rows());
}

void MlpBuilder::forward(OperandId in, OperandId out) {
  const OperandId inner = up_columns("up.out", role_of_inner());
  const OperandId active = inner_columns("activation.out", Role::saved);
  const std::size_t first = block_.size();
  linear_.forward(up(), in, inner);
  keep_inner(inner);
  act(block_.add(OpKind::activation, prefix_ + "activation", {inner}, {active}));
  linear_.forward(down(), active, out);
  for (Operation& each : block_.since(first)) each.module.mlp = prefix_.empty();
}

void MlpBuilder::backward(OperandId saved_in, OperandId gradient_out, OperandId gradient_in) {
  const OperandId inner = up_columns("up.out", role_of_inner());
  const OperandId active = inner_columns("activation.out", Role::saved);
  const OperandId d_active = inner_columns("activation.out.grad", Role::temporary);
  const OperandId d_inner = up_columns("up.out.grad", Role::temporary);
  linear_.backward(down(), active, gradient_out, d_active);
  restore_inner(inner);
  act(block_.add(OpKind::activation_backward, prefix_ + "activation.backward", {d_active, inner},
                 {d_inner}));
  linear_.backward(up(), saved_in, d_inner, gradient_in);
}

}  // namespace orrery::models
