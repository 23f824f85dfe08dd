#include "models/operations/layer.hpp"

namespace orrery::models {

LayerBuilder::LayerBuilder(const BlockInputs& inputs, Pass pass)
    : TransformerBuilder{inputs, pass == Pass::forward ? "layer.forward" : "layer.backward", pass} {
}

OperandId LayerBuilder::qkv_columns(std::string_view name, Role role) {
  return features(name, role, qkv().out, heads_layout(inputs_.model));
}
OperandId LayerBuilder::attention_columns(std::string_view name, Role role) {
  return features(name, role, projection().in, by_columns(value_width(inputs_.model)));
}
OperandId LayerBuilder::up_columns(const Mlp& mlp, std::string_view name, Role role) {
  return features(mlp.prefix + std::string{name}, role, up(mlp).out,
                  mlp_layout(inputs_.model, mlp.width));
}
OperandId LayerBuilder::mlp_columns(const Mlp& mlp, std::string_view name, Role role) {
  return features(mlp.prefix + std::string{name}, role, mlp.width);
}

Linear LayerBuilder::qkv() const {
  const Model& model = inputs_.model;
  return {.name = "qkv",
          .in = model.hidden,
          .out = (model.attention.heads + model.attention.kv_heads) * model.attention.head_dim +
                 model.attention.kv_heads * value_width(model),
          .bias = model.attention.qkv_bias,
          .sharding = heads_layout(model),
          .target = LoraTarget::qkv};
}
Linear LayerBuilder::projection() const {
  const Model& model = inputs_.model;
  return {.name = "projection",
          .in = model.attention.heads * value_width(model),
          .out = model.hidden,
          .bias = model.attention.output_bias,
          .sharding = by_rows(value_width(model)),
          .target = LoraTarget::projection};
}
Linear LayerBuilder::up(const Mlp& mlp) const {
  const Model& model = inputs_.model;
  return {.name = mlp.prefix + "up",
          .in = model.hidden,
          .out = mlp.width * (model.mlp.gated ? 2 : 1),
          .bias = model.mlp.bias,
          .sharding = mlp_layout(model, mlp.width),
          .target = LoraTarget::up};
}
Linear LayerBuilder::down(const Mlp& mlp) const {
  const Model& model = inputs_.model;
  return {.name = mlp.prefix + "down",
          .in = mlp.width,
          .out = model.hidden,
          .bias = model.mlp.bias,
          .sharding = by_rows(),
          .target = LoraTarget::down};
}

/// out = residual + dropout(branch + bias).
void LayerBuilder::add(const std::string& name, OperandId residual, OperandId branch, OperandId out,
                       bool bias) {
  Operation& op = block_.add(OpKind::add, name, {residual, branch}, {out});
  if (bias) block_.read(op, parameter(bias_of(name + ".bias")));
  if (inputs_.software.kernels.dropout) {
    block_.write(op, rows(name + ".mask", Role::saved, DType::uint8));
  }
}

/// Gradient of the branch: the same tensor as the residual's where there is no dropout.
OperandId LayerBuilder::add_backward(const std::string& name, OperandId dy, bool bias) {
  const bool dropout = inputs_.software.kernels.dropout;
  if (!dropout && !bias) return dy;
  const OperandId out = dropout ? rows(name + ".grad", Role::temporary) : dy;
  Operation& op = block_.add(OpKind::add_backward, name + ".backward", {dy}, {});
  op.dtype = storage_;
  if (dropout) {
    block_.read(op, rows(name + ".mask", Role::saved, DType::uint8));
    block_.write(op, out);
  }
  if (bias) block_.write(op, gradient(bias_of(name + ".bias"), dy));
  return out;
}

/// Role of an activation's input: what is kept in 8 bits is made again from them in backward.
Role LayerBuilder::role_of_inner() const {
  return inputs_.plan.formats.low_precision_activation ? Role::temporary : Role::saved;
}

/// Source  Megatron-Core, activation_func_fp8_input_store of fusions/fused_bias_swiglu.py: a cast
///         of its own in forward, and one back in backward
void LayerBuilder::keep_inner(OperandId inner) {
  if (!inputs_.plan.formats.low_precision_activation) return;
  block_.add(OpKind::quantise, block_.at(inner).name + ".narrow", {inner},
             {in_8_bits(inner, Role::saved)});
}

void LayerBuilder::restore_inner(OperandId inner) {
  if (!inputs_.plan.formats.low_precision_activation) return;
  block_.add(OpKind::quantise, block_.at(inner).name + ".widen", {in_8_bits(inner, Role::saved)},
             {inner});
}

void LayerBuilder::mlp_forward(const Mlp& mlp, OperandId in, OperandId out) {
  const OperandId inner = up_columns(mlp, "up.out", role_of_inner());
  const OperandId active = mlp_columns(mlp, "activation.out", Role::saved);
  const std::size_t first = block_.size();
  linear_.forward(up(mlp), in, inner);
  keep_inner(inner);
  block_.add(OpKind::activation, mlp.prefix + "activation", {inner}, {active})
      .mutable_activation() = inputs_.model.mlp.activation;
  linear_.forward(down(mlp), active, out);
  for (Operation& each : block_.since(first)) each.module.mlp = !mlp.is_shared;
}

void LayerBuilder::mlp_backward(const Mlp& mlp, OperandId saved_in, OperandId gradient_out,
                                OperandId gradient_in) {
  const OperandId inner = up_columns(mlp, "up.out", role_of_inner());
  const OperandId active = mlp_columns(mlp, "activation.out", Role::saved);
  const OperandId d_active = mlp_columns(mlp, "activation.out.grad", Role::temporary);
  const OperandId d_inner = up_columns(mlp, "up.out.grad", Role::temporary);
  linear_.backward(down(mlp), active, gradient_out, d_active);
  restore_inner(inner);
  block_
      .add(OpKind::activation_backward, mlp.prefix + "activation.backward", {d_active, inner},
           {d_inner})
      .mutable_activation() = inputs_.model.mlp.activation;
  linear_.backward(up(mlp), saved_in, d_inner, gradient_in);
}

void LayerBuilder::feed_forward(OperandId in, OperandId out) {
  if (inputs_.model.experts.count > 0) return experts_forward(in, out);
  mlp_forward(own(), in, out);
}

void LayerBuilder::feed_backward(OperandId saved_in, OperandId gradient_out,
                                 OperandId gradient_in) {
  if (inputs_.model.experts.count > 0) return experts_backward(saved_in, gradient_out, gradient_in);
  mlp_backward(own(), saved_in, gradient_out, gradient_in);
}

/// Parallel block: attention and MLP both read the layer's input, through one norm or one each.
void LayerBuilder::parallel_forward(OperandId x, OperandId n1, OperandId y) {
  const Model& model = inputs_.model;
  const OperandId context = attention_columns("attention.out", Role::saved);
  const OperandId mlp_out = rows("down.out", Role::temporary);
  OperandId n2 = n1;
  if (!model.norms.shared) norm("norm2", x, n2 = rows("norm2.out", Role::saved));
  const OperandId attention_out = rows("projection.out", Role::temporary);
  linear_.forward(projection(), context, attention_out);
  feed_forward(n2, mlp_out);
  const OperandId sum = rows("branches", Role::temporary);
  Operation& both = block_.add(OpKind::add, "branches", {attention_out, mlp_out}, {sum});
  if (model.attention.output_bias) block_.read(both, parameter(bias_of("projection.bias")));
  add("mlp.add", x, sum, y, model.mlp.bias);
}

Block LayerBuilder::forward() {
  const Model& model = inputs_.model;
  const OperandId x = rows("x", Role::input);
  const OperandId n1 = rows("norm1.out", Role::saved);
  norm("norm1", x, n1);
  qkv_forward(n1);
  attention_forward();
  const OperandId context = attention_columns("attention.out", Role::saved);
  const OperandId y = rows("y", Role::output);
  const OperandId mlp_out = rows("down.out", Role::temporary);
  if (model.parallel_block) {
    parallel_forward(x, n1, y);
    return block_.finish();
  }
  const OperandId projected = rows("projection.out", Role::temporary);
  linear_.forward(projection(), context, projected);
  const OperandId middle = rows("middle", Role::saved);
  add("attention.add", x, projected, middle, model.attention.output_bias);
  const OperandId n2 = rows("norm2.out", Role::saved);
  norm("norm2", middle, n2);
  feed_forward(n2, mlp_out);
  add("mlp.add", middle, mlp_out, y, model.mlp.bias);
  return block_.finish();
}

/// Attention and MLP both take the gradient of their sum.
void LayerBuilder::parallel_backward(OperandId d_sum, OperandId dy, OperandId dx) {
  const Model& model = inputs_.model;
  const OperandId x = rows("x", Role::saved);
  const OperandId n1 = rows("norm1.out", Role::saved);
  const OperandId context = attention_columns("attention.out", Role::saved);
  const OperandId d_context = attention_columns("attention.out.grad", Role::temporary);
  const OperandId d_qkv = qkv_columns("qkv.out.grad", Role::temporary);
  const OperandId d_n1 = rows("norm1.out.grad", Role::temporary);
  const OperandId d_n2 = rows("norm2.out.grad", Role::temporary);
  if (model.attention.output_bias) {
    Operation& bias = block_.add(OpKind::add_backward, "branches.backward", {d_sum}, {});
    block_.write(bias, gradient(bias_of("projection.bias"), d_sum));
    bias.dtype = storage_;
  }
  feed_backward(model.norms.shared ? n1 : rows("norm2.out", Role::saved), d_sum, d_n2);
  linear_.backward(projection(), context, d_sum, d_context);
  attention_backward(d_context, d_qkv);
  qkv_backward(n1, d_qkv, d_n1);
  if (model.norms.shared) {
    const OperandId both = rows("norm1.branches.grad", Role::temporary);
    block_.add(OpKind::add, "norm1.branches", {d_n1, d_n2}, {both});
    norm_backward("norm1", both, x, dy, dx);
    return;
  }
  const OperandId partial = rows("norm2.grad", Role::temporary);
  norm_backward("norm2", d_n2, x, dy, partial);
  norm_backward("norm1", d_n1, x, partial, dx);
}

Block LayerBuilder::backward() {
  const Model& model = inputs_.model;
  const OperandId dy = rows("y.grad", Role::input);
  const OperandId dx = rows("x.grad", Role::output);
  const OperandId x = rows("x", Role::saved);
  const OperandId d_mlp = add_backward("mlp.add", dy, model.mlp.bias);
  if (model.parallel_block) {
    parallel_backward(d_mlp, dy, dx);
    return block_.finish();
  }
  const OperandId n1 = rows("norm1.out", Role::saved);
  const OperandId context = attention_columns("attention.out", Role::saved);
  const OperandId d_context = attention_columns("attention.out.grad", Role::temporary);
  const OperandId d_qkv = qkv_columns("qkv.out.grad", Role::temporary);
  const OperandId d_n1 = rows("norm1.out.grad", Role::temporary);
  const OperandId d_n2 = rows("norm2.out.grad", Role::temporary);
  const OperandId middle = rows("middle", Role::saved);
  const OperandId d_middle = rows("middle.grad", Role::temporary);
  feed_backward(rows("norm2.out", Role::saved), d_mlp, d_n2);
  norm_backward("norm2", d_n2, middle, dy, d_middle);
  const OperandId d_projected =
      add_backward("attention.add", d_middle, model.attention.output_bias);
  linear_.backward(projection(), context, d_projected, d_context);
  attention_backward(d_context, d_qkv);
  qkv_backward(n1, d_qkv, d_n1);
  norm_backward("norm1", d_n1, x, d_middle, dx);
  return block_.finish();
}

BlockPair layer_blocks(const BlockInputs& inputs) {
  if (inputs.model.norms.after_residual) {
    return {LayerBuilder{inputs, Pass::forward}.post_norm_forward(),
            LayerBuilder{inputs, Pass::backward}.post_norm_backward()};
  }
  return {LayerBuilder{inputs, Pass::forward}.forward(),
          LayerBuilder{inputs, Pass::backward}.backward()};
}

}  // namespace orrery::models
