// A post-norm layer as BERT's, whose norms follow the residual additions:
//   m = norm1(x + attention(x)),  y = norm2(m + mlp(m))
// Source  Devlin et al. 2018, arXiv 1810.04805; Vaswani et al. 2017, arXiv 1706.03762, section 3.1

#include "models/operations/layer.hpp"

namespace orrery::models {

Block LayerBuilder::post_norm_forward() {
  const Model& model = inputs_.model;
  const OperandId x = rows("x", Role::input);
  qkv_forward(x);
  attention_forward();
  const OperandId projected = rows("projection.out", Role::temporary);
  linear_.forward(projection(), attention_columns("attention.out", Role::saved), projected);
  const OperandId sum = rows("attention.sum", Role::saved);
  add("attention.add", x, projected, sum, model.attention.output_bias);
  const OperandId middle = rows("norm1.out", Role::saved);
  norm("norm1", sum, middle);
  const OperandId mlp_out = rows("down.out", Role::temporary);
  feed_forward(middle, mlp_out);
  const OperandId last = rows("mlp.sum", Role::saved);
  add("mlp.add", middle, mlp_out, last, model.mlp.bias);
  norm("norm2", last, rows("y", Role::output));
  return block_.finish();
}

/// The gradients of a branch and of its residual are summed once both are known.
Block LayerBuilder::post_norm_backward() {
  const Model& model = inputs_.model;
  const OperandId dy = rows("y.grad", Role::input);
  const OperandId dx = rows("x.grad", Role::output);
  const OperandId x = rows("x", Role::saved);
  const OperandId middle = rows("norm1.out", Role::saved);
  const OperandId d_last = rows("mlp.sum.grad", Role::temporary);
  norm_backward("norm2", dy, rows("mlp.sum", Role::saved), std::nullopt, d_last);
  const OperandId d_mlp = add_backward("mlp.add", d_last, model.mlp.bias);
  const OperandId of_mlp = rows("up.in.grad", Role::temporary);
  feed_backward(middle, d_mlp, of_mlp);
  const OperandId d_middle = rows("norm1.out.grad", Role::temporary);
  block_.add(OpKind::add, "mlp.branches", {of_mlp, d_last}, {d_middle});
  const OperandId d_sum = rows("attention.sum.grad", Role::temporary);
  norm_backward("norm1", d_middle, rows("attention.sum", Role::saved), std::nullopt, d_sum);
  const OperandId d_projected = add_backward("attention.add", d_sum, model.attention.output_bias);
  const OperandId d_context = attention_columns("attention.out.grad", Role::temporary);
  const OperandId d_qkv = qkv_columns("qkv.out.grad", Role::temporary);
  linear_.backward(projection(), attention_columns("attention.out", Role::saved), d_projected,
                   d_context);
  attention_backward(d_context, d_qkv);
  const OperandId of_qkv = rows("qkv.in.grad", Role::temporary);
  qkv_backward(x, d_qkv, of_qkv);
  block_.add(OpKind::add, "attention.branches", {of_qkv, d_sum}, {dx});
  return block_.finish();
}

}  // namespace orrery::models
