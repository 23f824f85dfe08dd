#include "models/operations/layer.hpp"

namespace orrery::models {

LayerBuilder::LayerBuilder(const BlockInputs& inputs, Pass pass)
    : inputs_{inputs},
      shares_{inputs},
      storage_{storage_dtype(inputs.plan.precision)},
      gradient_{gradient_dtype(inputs.plan, inputs.software)},
      block_{pass == Pass::forward ? "layer.forward" : "layer.backward", pass},
      linear_{block_, inputs_, shares_} {}

OperandId LayerBuilder::rows(std::string_view name, Role role) {
  return block_.operand(name, role, storage_, {1, shares_.rows, shares_.hidden});
}

OperandId LayerBuilder::tokens(std::string_view name, Role role, std::int64_t columns) {
  return block_.operand(name, role, storage_, {1, shares_.tokens, columns});
}

Linear LayerBuilder::qkv() const {
  return {.name = "qkv",
          .in = shares_.hidden,
          .out = shares_.query + 2 * shares_.key_value,
          .bias = inputs_.model.qkv_bias};
}
Linear LayerBuilder::projection() const {
  return {.name = "projection",
          .in = shares_.query,
          .out = shares_.hidden,
          .bias = inputs_.model.output_bias,
          .cut = LinearCut::row};
}
Linear LayerBuilder::up() const {
  return {.name = "up",
          .in = shares_.hidden,
          .out = shares_.ffn * (inputs_.model.gated_mlp ? 2 : 1),
          .bias = inputs_.model.mlp_bias};
}
Linear LayerBuilder::down() const {
  return {.name = "down",
          .in = shares_.ffn,
          .out = shares_.hidden,
          .bias = inputs_.model.mlp_bias,
          .cut = LinearCut::row};
}

void LayerBuilder::norm(std::string_view name, OperandId in, OperandId out) {
  const OperandId weight = block_.operand(std::string{name} + ".weight", Role::parameter, storage_,
                                          {1, 1, shares_.hidden});
  Operation& op = block_.add(OpKind::norm, name, {in, weight}, {out});
  if (has_norm_bias(inputs_.model)) {
    block_.read(op, block_.operand(std::string{name} + ".bias", Role::parameter, storage_,
                                   {1, 1, shares_.hidden}));
  }
}

/// Adds the residual's gradient on its way out: dx = norm'(gradient) + residual.
void LayerBuilder::norm_backward(std::string_view name, OperandId gradient, OperandId saved_in,
                                 OperandId residual, OperandId out) {
  const std::string full{name};
  const OperandId weight =
      block_.operand(full + ".weight", Role::parameter, storage_, {1, 1, shares_.hidden});
  const OperandId weight_gradient =
      block_.operand(full + ".weight.grad", Role::gradient, gradient_, {1, 1, shares_.hidden});
  Operation& op = block_.add(OpKind::norm_backward, full + ".backward",
                             {gradient, saved_in, weight, residual}, {out, weight_gradient});
  op.dtype = storage_;
  if (has_norm_bias(inputs_.model)) {
    block_.write(
        op, block_.operand(full + ".bias.grad", Role::gradient, gradient_, {1, 1, shares_.hidden}));
  }
}

/// out = residual + dropout(branch + bias).
void LayerBuilder::add(std::string_view name, OperandId residual, OperandId branch, OperandId out,
                       bool bias) {
  const std::string full{name};
  Operation& op = block_.add(OpKind::add, full, {residual, branch}, {out});
  if (bias) {
    block_.read(op,
                block_.operand(full + ".bias", Role::parameter, storage_, {1, 1, shares_.hidden}));
  }
  if (inputs_.software.kernels.dropout) {
    block_.write(op, block_.operand(full + ".mask", Role::saved, DType::uint8,
                                    {1, shares_.rows, shares_.hidden}));
  }
}

/// The branch's gradient: the residual's own where there is neither dropout nor bias.
OperandId LayerBuilder::add_backward(std::string_view name, OperandId gradient, bool bias) {
  const std::string full{name};
  const bool dropout = inputs_.software.kernels.dropout;
  if (!dropout && !bias) return gradient;
  const OperandId out = dropout ? rows(full + ".grad", Role::temporary) : gradient;
  Operation& op = block_.add(OpKind::add_backward, full + ".backward", {gradient}, {});
  op.dtype = storage_;
  if (dropout) {
    block_.read(op, block_.operand(full + ".mask", Role::saved, DType::uint8,
                                   {1, shares_.rows, shares_.hidden}));
    block_.write(op, out);
  }
  if (bias) {
    block_.write(
        op, block_.operand(full + ".bias.grad", Role::gradient, gradient_, {1, 1, shares_.hidden}));
  }
  return out;
}

void LayerBuilder::mlp_forward(OperandId in, OperandId out) {
  const OperandId inner = tokens("up.out", Role::saved, up().out);
  const OperandId active = tokens("activation.out", Role::saved, shares_.ffn);
  linear_.forward(up(), in, inner);
  block_.add(OpKind::activation, "activation", {inner}, {active}).activation =
      inputs_.model.activation;
  linear_.forward(down(), active, out);
}

void LayerBuilder::mlp_backward(OperandId saved_in, OperandId gradient_out, OperandId gradient_in) {
  const OperandId inner = tokens("up.out", Role::saved, up().out);
  const OperandId active = tokens("activation.out", Role::saved, shares_.ffn);
  const OperandId d_active = tokens("activation.out.grad", Role::temporary, shares_.ffn);
  const OperandId d_inner = tokens("up.out.grad", Role::temporary, up().out);
  linear_.backward(down(), active, gradient_out, d_active);
  block_.add(OpKind::activation_backward, "activation.backward", {d_active, inner}, {d_inner})
      .activation = inputs_.model.activation;
  linear_.backward(up(), saved_in, d_inner, gradient_in);
}

Block LayerBuilder::forward() {
  const Model& model = inputs_.model;
  const OperandId x = rows("x", Role::input);
  const OperandId n1 = rows("norm1.out", Role::saved);
  norm("norm1", x, n1);
  linear_.forward(qkv(), n1, tokens("qkv.out", Role::saved, qkv().out));
  attention_forward();
  const OperandId context = tokens("attention.out", Role::saved, shares_.query);
  const OperandId y = rows("y", Role::output);
  const OperandId mlp_out = rows("down.out", Role::temporary);
  if (model.parallel_block) {
    OperandId n2 = n1;
    if (!model.shared_norm) norm("norm2", x, n2 = rows("norm2.out", Role::saved));
    const OperandId attention_out = rows("projection.out", Role::temporary);
    linear_.forward(projection(), context, attention_out);
    mlp_forward(n2, mlp_out);
    const OperandId sum = rows("branches", Role::temporary);
    Operation& both = block_.add(OpKind::add, "branches", {attention_out, mlp_out}, {sum});
    if (model.output_bias) {
      block_.read(both, block_.operand("projection.bias", Role::parameter, storage_,
                                       {1, 1, shares_.hidden}));
    }
    add("mlp.add", x, sum, y, model.mlp_bias);
    return block_.finish();
  }
  const OperandId projected = rows("projection.out", Role::temporary);
  linear_.forward(projection(), context, projected);
  const OperandId middle = rows("middle", Role::saved);
  add("attention.add", x, projected, middle, model.output_bias);
  const OperandId n2 = rows("norm2.out", Role::saved);
  norm("norm2", middle, n2);
  mlp_forward(n2, mlp_out);
  add("mlp.add", middle, mlp_out, y, model.mlp_bias);
  return block_.finish();
}

/// Attention and MLP side by side: both take the gradient of their sum.
void LayerBuilder::parallel_backward(OperandId d_sum, OperandId dy, OperandId dx) {
  const Model& model = inputs_.model;
  const OperandId x = rows("x", Role::saved);
  const OperandId n1 = rows("norm1.out", Role::saved);
  const OperandId context = tokens("attention.out", Role::saved, shares_.query);
  const OperandId d_context = tokens("attention.out.grad", Role::temporary, shares_.query);
  const OperandId d_qkv = tokens("qkv.out.grad", Role::temporary, qkv().out);
  const OperandId d_n1 = rows("norm1.out.grad", Role::temporary);
  const OperandId d_n2 = rows("norm2.out.grad", Role::temporary);
  if (model.output_bias) {
    Operation& bias = block_.add(OpKind::add_backward, "branches.backward", {d_sum}, {});
    block_.write(bias, block_.operand("projection.bias.grad", Role::gradient, gradient_,
                                      {1, 1, shares_.hidden}));
    bias.dtype = storage_;
  }
  mlp_backward(model.shared_norm ? n1 : rows("norm2.out", Role::saved), d_sum, d_n2);
  linear_.backward(projection(), context, d_sum, d_context);
  attention_backward(d_context, d_qkv);
  linear_.backward(qkv(), n1, d_qkv, d_n1);
  if (model.shared_norm) {
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
  const OperandId d_mlp = add_backward("mlp.add", dy, model.mlp_bias);
  if (model.parallel_block) {
    parallel_backward(d_mlp, dy, dx);
    return block_.finish();
  }
  const OperandId n1 = rows("norm1.out", Role::saved);
  const OperandId context = tokens("attention.out", Role::saved, shares_.query);
  const OperandId d_context = tokens("attention.out.grad", Role::temporary, shares_.query);
  const OperandId d_qkv = tokens("qkv.out.grad", Role::temporary, qkv().out);
  const OperandId d_n1 = rows("norm1.out.grad", Role::temporary);
  const OperandId d_n2 = rows("norm2.out.grad", Role::temporary);
  const OperandId middle = rows("middle", Role::saved);
  const OperandId d_middle = rows("middle.grad", Role::temporary);
  mlp_backward(rows("norm2.out", Role::saved), d_mlp, d_n2);
  norm_backward("norm2", d_n2, middle, dy, d_middle);
  const OperandId d_projected = add_backward("attention.add", d_middle, model.output_bias);
  linear_.backward(projection(), context, d_projected, d_context);
  attention_backward(d_context, d_qkv);
  linear_.backward(qkv(), n1, d_qkv, d_n1);
  norm_backward("norm1", d_n1, x, d_middle, dx);
  return block_.finish();
}

BlockPair layer_blocks(const BlockInputs& inputs) {
  return {LayerBuilder{inputs, Pass::forward}.forward(),
          LayerBuilder{inputs, Pass::backward}.backward()};
}

}  // namespace orrery::models
