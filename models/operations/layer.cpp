// A layer around its parts, forward and backward, operation by operation. Backward finds the
// activations that forward saved by their names, which are the same in both.
//   one after the other   m = x + mixer(norm1(x)),  y = m + channel(norm2(m)); a layer of one part
//                         is the first half
//   parallel              y = x + mixer(n1) + channel(n2), n1 and n2 one norm of x or two
//   post-norm             m = norm1(x + mixer(x)),  y = norm2(m + channel(m)), as BERT's
//   norms of outputs      m = x + norm1(mixer(x)),  y = m + norm2(channel(m)), as OLMo 2's
//   both                  m = x + norm1_after(mixer(norm1(x))),  y as well, as Gemma 2's
// Source  Devlin et al. 2018, arXiv 1810.04805; Vaswani et al. 2017, arXiv 1706.03762, section 3.1;
//         OLMo team 2025, arXiv 2501.00656; Gemma Team 2024, arXiv 2408.00118

#include <memory>

#include "models/operations/listed.hpp"
#include "models/operations/parts/mlp.hpp"
#include "models/operations/parts/part.hpp"

namespace orrery::models {

namespace {

/// The builder of a layer's part; null where the layer has none. A part is added here.
struct PartBuilders {
  BlockScope& scope;

  std::unique_ptr<MixerBuilder> mixer(const NoPart&) const { return nullptr; }
  std::unique_ptr<MixerBuilder> mixer(const AttentionPart& part) const {
    return attention_builder(scope, part);
  }
  std::unique_ptr<MixerBuilder> mixer(const ListedPart&) const { return none(); }
  std::unique_ptr<MixerBuilder> mixer(const Mamba2Part& part) const {
    return scan_builder(scope, part);
  }
  std::unique_ptr<MixerBuilder> mixer(const DeltaPart& part) const {
    return scan_builder(scope, part);
  }
  std::unique_ptr<MixerBuilder> mixer(const CountedPart&) const { return none(); }
  std::unique_ptr<ChannelBuilder> channel(const NoPart&) const { return nullptr; }
  std::unique_ptr<ChannelBuilder> channel(const MlpPart& part) const {
    return std::make_unique<MlpBuilder>(scope, part);
  }
  std::unique_ptr<ChannelBuilder> channel(const ExpertsPart& part) const {
    return experts_builder(scope, part);
  }
  std::unique_ptr<ChannelBuilder> channel(const CountedPart&) const { return none(); }

 private:
  static std::nullptr_t none() {
    ensure(false, "a part that is only counted has no operations");
    return nullptr;
  }
};

class LayerBuilder : private BlockScope, private TransformerBuilder {
 public:
  LayerBuilder(const BlockInputs& inputs, const Layer& layer, Pass pass)
      : BlockScope{inputs, pass == Pass::forward ? "layer.forward" : "layer.backward", pass},
        TransformerBuilder{static_cast<BlockScope&>(*this)} {
    const PartBuilders parts{*this};
    mixer_ = std::visit([&](const auto& part) { return parts.mixer(part); }, layer.mixer);
    channel_ = std::visit([&](const auto& part) { return parts.channel(part); }, layer.channel);
    ensure(mixer_ || channel_, "a layer without parts");
    const bool one_by_one = mixer_ && channel_ && !model().parallel_block;
    ensure(!norms_outputs() || one_by_one, "norms of outputs belong to two parts in sequence");
  }

  Block forward();
  Block backward();

 private:
  const Model& model() const { return inputs_.model; }
  void add(const std::string& name, OperandId residual, OperandId branch, OperandId out, bool bias);
  OperandId add_backward(const std::string& name, OperandId dy, bool bias);
  void mix(OperandId in, OperandId out) {
    mixer_->mix(in);
    mixer_->project(out);
  }
  /// Is each part's output normalised before it is added?
  bool norms_outputs() const { return model().norms.sandwich || model().norms.of_outputs; }
  std::string after(const std::string& name) const {
    return model().norms.of_outputs ? name : name + "_after";
  }
  OperandId normed_input(const std::string& name, OperandId in);
  OperandId normed_output(const std::string& name, OperandId branch);
  OperandId output_backward(const std::string& name, std::string_view branch, OperandId dy);
  void input_backward(const std::string& name, OperandId gradient, OperandId in, OperandId residual,
                      OperandId out);
  void single_forward(OperandId x, OperandId n1);
  void single_backward(OperandId dy, OperandId dx, OperandId x);
  void sequential_forward(OperandId x, OperandId n1);
  void sequential_backward(OperandId dy, OperandId dx, OperandId x);
  void parallel_forward(OperandId x, OperandId n1);
  void parallel_backward(OperandId dy, OperandId dx, OperandId x);
  void post_norm_forward();
  void post_norm_backward();

  std::unique_ptr<MixerBuilder> mixer_;
  std::unique_ptr<ChannelBuilder> channel_;
};

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

void LayerBuilder::single_forward(OperandId x, OperandId n1) {
  const OperandId y = rows("y", Role::output);
  if (mixer_) {
    const OperandId projected = rows("projection.out", Role::temporary);
    mix(n1, projected);
    add("attention.add", x, projected, y, mixer_->has_bias());
    return;
  }
  const OperandId out = rows("down.out", Role::temporary);
  channel_->forward(n1, out);
  add("mlp.add", x, out, y, channel_->has_bias());
}

void LayerBuilder::single_backward(OperandId dy, OperandId dx, OperandId x) {
  const OperandId n1 = rows("norm1.out", Role::saved);
  const OperandId d_n1 = rows("norm1.out.grad", Role::temporary);
  if (mixer_) {
    mixer_->backward(n1, add_backward("attention.add", dy, mixer_->has_bias()), d_n1);
  } else {
    channel_->backward(n1, add_backward("mlp.add", dy, channel_->has_bias()), d_n1);
  }
  norm_backward("norm1", d_n1, x, dy, dx);
}

/// What a part reads: its input behind a norm, or the input itself.
OperandId LayerBuilder::normed_input(const std::string& name, OperandId in) {
  if (model().norms.of_outputs) return in;
  const OperandId out = rows(name + ".out", Role::saved);
  norm(name, in, out);
  return out;
}

/// What the residual addition reads: a part's output behind a norm, or the output itself.
OperandId LayerBuilder::normed_output(const std::string& name, OperandId branch) {
  if (!norms_outputs()) return branch;
  const OperandId out = rows(after(name) + ".branch", Role::temporary);
  norm(after(name), branch, out);
  return out;
}

/// Gradient of a part's output, of which `branch` is the name, from that of the residual addition.
OperandId LayerBuilder::output_backward(const std::string& name, std::string_view branch,
                                        OperandId dy) {
  if (!norms_outputs()) return dy;
  const OperandId out = rows(std::string{branch} + ".grad", Role::temporary);
  norm_backward(after(name), dy, rows(branch, Role::saved), std::nullopt, out);
  return out;
}

void LayerBuilder::sequential_forward(OperandId x, OperandId n1) {
  mixer_->mix(n1);
  const Role of_branches = norms_outputs() ? Role::saved : Role::temporary;
  const OperandId y = rows("y", Role::output);
  const OperandId mlp_out = rows("down.out", of_branches);
  const OperandId projected = rows("projection.out", of_branches);
  mixer_->project(projected);
  const OperandId middle = rows("middle", Role::saved);
  add("attention.add", x, normed_output("norm1", projected), middle, mixer_->has_bias());
  channel_->forward(normed_input("norm2", middle), mlp_out);
  add("mlp.add", middle, normed_output("norm2", mlp_out), y, channel_->has_bias());
}

void LayerBuilder::sequential_backward(OperandId dy, OperandId dx, OperandId x) {
  const OperandId d_mlp = add_backward("mlp.add", dy, channel_->has_bias());
  const bool reads_x = model().norms.of_outputs;
  const OperandId n1 = reads_x ? x : rows("norm1.out", Role::saved);
  const OperandId d_n1 = rows("norm1.out.grad", Role::temporary);
  const OperandId d_n2 = rows("norm2.out.grad", Role::temporary);
  const OperandId middle = rows("middle", Role::saved);
  const OperandId d_middle = rows("middle.grad", Role::temporary);
  channel_->backward(reads_x ? middle : rows("norm2.out", Role::saved),
                     output_backward("norm2", "down.out", d_mlp), d_n2);
  input_backward("norm2", d_n2, middle, dy, d_middle);
  const OperandId d_mixer = add_backward("attention.add", d_middle, mixer_->has_bias());
  mixer_->backward(n1, output_backward("norm1", "projection.out", d_mixer), d_n1);
  input_backward("norm1", d_n1, x, d_middle, dx);
}

/// Gradient of a part's input, from that of what it reads and that of the residual.
void LayerBuilder::input_backward(const std::string& name, OperandId gradient, OperandId in,
                                  OperandId residual, OperandId out) {
  if (!model().norms.of_outputs) return norm_backward(name, gradient, in, residual, out);
  block_.add(OpKind::add, name + ".branches", {gradient, residual}, {out});
}

void LayerBuilder::parallel_forward(OperandId x, OperandId n1) {
  mixer_->mix(n1);
  const OperandId y = rows("y", Role::output);
  const OperandId mlp_out = rows("down.out", Role::temporary);
  OperandId n2 = n1;
  if (!model().norms.shared) norm("norm2", x, n2 = rows("norm2.out", Role::saved));
  const OperandId attention_out = rows("projection.out", Role::temporary);
  mixer_->project(attention_out);
  channel_->forward(n2, mlp_out);
  const OperandId sum = rows("branches", Role::temporary);
  Operation& both = block_.add(OpKind::add, "branches", {attention_out, mlp_out}, {sum});
  if (mixer_->has_bias()) block_.read(both, parameter(bias_of("projection.bias")));
  add("mlp.add", x, sum, y, channel_->has_bias());
}

/// Both parts take the gradient of their sum.
void LayerBuilder::parallel_backward(OperandId dy, OperandId dx, OperandId x) {
  const OperandId d_sum = add_backward("mlp.add", dy, channel_->has_bias());
  const OperandId n1 = rows("norm1.out", Role::saved);
  const OperandId d_n1 = rows("norm1.out.grad", Role::temporary);
  const OperandId d_n2 = rows("norm2.out.grad", Role::temporary);
  if (mixer_->has_bias()) {
    Operation& bias = block_.add(OpKind::add_backward, "branches.backward", {d_sum}, {});
    block_.write(bias, gradient(bias_of("projection.bias"), d_sum));
    bias.dtype = storage_;
  }
  channel_->backward(model().norms.shared ? n1 : rows("norm2.out", Role::saved), d_sum, d_n2);
  mixer_->backward(n1, d_sum, d_n1);
  if (model().norms.shared) {
    const OperandId both = rows("norm1.branches.grad", Role::temporary);
    block_.add(OpKind::add, "norm1.branches", {d_n1, d_n2}, {both});
    norm_backward("norm1", both, x, dy, dx);
    return;
  }
  const OperandId partial = rows("norm2.grad", Role::temporary);
  norm_backward("norm2", d_n2, x, dy, partial);
  norm_backward("norm1", d_n1, x, partial, dx);
}

void LayerBuilder::post_norm_forward() {
  const OperandId x = rows("x", Role::input);
  mixer_->mix(x);
  const OperandId projected = rows("projection.out", Role::temporary);
  mixer_->project(projected);
  const OperandId sum = rows("attention.sum", Role::saved);
  add("attention.add", x, projected, sum, mixer_->has_bias());
  const OperandId middle = rows("norm1.out", Role::saved);
  norm("norm1", sum, middle);
  const OperandId mlp_out = rows("down.out", Role::temporary);
  channel_->forward(middle, mlp_out);
  const OperandId last = rows("mlp.sum", Role::saved);
  add("mlp.add", middle, mlp_out, last, channel_->has_bias());
  norm("norm2", last, rows("y", Role::output));
}

/// The gradients of a branch and of its residual are summed once both are known.
void LayerBuilder::post_norm_backward() {
  const OperandId dy = rows("y.grad", Role::input);
  const OperandId dx = rows("x.grad", Role::output);
  const OperandId x = rows("x", Role::saved);
  const OperandId middle = rows("norm1.out", Role::saved);
  const OperandId d_last = rows("mlp.sum.grad", Role::temporary);
  norm_backward("norm2", dy, rows("mlp.sum", Role::saved), std::nullopt, d_last);
  const OperandId d_mlp = add_backward("mlp.add", d_last, channel_->has_bias());
  const OperandId of_mlp = rows("up.in.grad", Role::temporary);
  channel_->backward(middle, d_mlp, of_mlp);
  const OperandId d_middle = rows("norm1.out.grad", Role::temporary);
  block_.add(OpKind::add, "mlp.branches", {of_mlp, d_last}, {d_middle});
  const OperandId d_sum = rows("attention.sum.grad", Role::temporary);
  norm_backward("norm1", d_middle, rows("attention.sum", Role::saved), std::nullopt, d_sum);
  const OperandId d_projected = add_backward("attention.add", d_sum, mixer_->has_bias());
  const OperandId of_qkv = rows("qkv.in.grad", Role::temporary);
  mixer_->backward(x, d_projected, of_qkv);
  block_.add(OpKind::add, "attention.branches", {of_qkv, d_sum}, {dx});
}

Block LayerBuilder::forward() {
  if (model().norms.after_residual) {
    post_norm_forward();
    return block_.finish();
  }
  const OperandId x = rows("x", Role::input);
  const OperandId n1 = normed_input("norm1", x);
  if (!mixer_ || !channel_) {
    single_forward(x, n1);
  } else if (model().parallel_block) {
    parallel_forward(x, n1);
  } else {
    sequential_forward(x, n1);
  }
  return block_.finish();
}

Block LayerBuilder::backward() {
  if (model().norms.after_residual) {
    post_norm_backward();
    return block_.finish();
  }
  const OperandId dy = rows("y.grad", Role::input);
  const OperandId dx = rows("x.grad", Role::output);
  const OperandId x = rows("x", Role::saved);
  if (!mixer_ || !channel_) {
    single_backward(dy, dx, x);
  } else if (model().parallel_block) {
    parallel_backward(dy, dx, x);
  } else {
    sequential_backward(dy, dx, x);
  }
  return block_.finish();
}

}  // namespace

BlockPair layer_blocks(const BlockInputs& inputs, const Layer& layer) {
  if (const ListedPart* const listed = layer.listed()) return listed_blocks(inputs, *listed);
  return {LayerBuilder{inputs, layer, Pass::forward}.forward(),
          LayerBuilder{inputs, layer, Pass::backward}.backward()};
}

}  // namespace orrery::models
