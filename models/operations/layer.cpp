// A layer around its parts, forward and backward, operation by operation. Backward finds the
// activations that forward saved by their names, which are the same in both.
//   one after the other   m = x + mixer(norm1(x)),  y = m + channel(norm2(m)); a layer of one part
//                         is the first half
//   parallel              y = x + mixer(n1) + channel(n2), n1 and n2 one norm of x or two
//   post-norm             m = norm1(x + mixer(x)),  y = norm2(m + channel(m)), as BERT's
//   norms of outputs      m = x + norm1(mixer(x)),  y = m + norm2(channel(m)), as OLMo 2's
//   both                  m = x + norm1_after(mixer(norm1(x))),  y as well, as Gemma 2's
//   cross-attention       c = m + cross(norm_cross(m)) before the channel, which then reads c; in
//                         post-norm c = norm_cross(m + cross(m)). Of a layer without mixer it is
//                         the mixer
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
  LayerBuilder(const BlockInputs& inputs, const Layer& layer, LayerPlace place, Pass pass)
      : BlockScope{inputs, pass == Pass::forward ? "layer.forward" : "layer.backward", pass},
        TransformerBuilder{static_cast<BlockScope&>(*this)},
        place_{place} {
    const PartBuilders parts{*this};
    mixer_ = std::visit([&](const auto& part) { return parts.mixer(part); }, layer.mixer);
    channel_ = std::visit([&](const auto& part) { return parts.channel(part); }, layer.channel);
    if (layer.cross) cross_ = cross_builder(*this, *layer.cross, place.ends_crossing);
    if (!mixer_) mixer_ = std::move(cross_);
    ensure(mixer_ || channel_, "a layer without parts");
    const bool one_by_one = mixer_ && channel_ && !model().parallel_block;
    ensure(!cross_ || (one_by_one && !norms_outputs()), "cross-attention is between two parts");
    ensure(!norms_outputs() || one_by_one, "norms of outputs belong to two parts in sequence");
  }

  Block forward();
  Block backward();

 private:
  const Model& model() const { return inputs_.model; }
  std::int64_t seq_len() const { return inputs_.plan.batch.seq_len; }
  /// A layer's input, and in backward the gradient of its output; what it makes of them.
  OperandId input_rows(Role role) {
    return place_.begins_decoder ? carried_rows("target", seq_len()) : rows("x", role);
  }
  OperandId input_gradient() {
    return place_.begins_decoder ? carried_rows("target.grad", seq_len())
                                 : rows("x.grad", Role::output);
  }
  /// Does the encoder's last norm come after its last layer?
  bool norms_encoder() const { return place_.ends_encoder && model().norms.final; }
  OperandId output_rows() {
    if (norms_encoder()) return rows("y", Role::saved);
    return place_.ends_encoder ? carried_rows("encoded", seq_len()) : rows("y", Role::output);
  }
  void end_encoder() {
    if (norms_encoder()) norm("encoder_norm", output_rows(), carried_rows("encoded", seq_len()));
  }
  OperandId output_gradient() {
    if (!place_.ends_encoder) return rows("y.grad", Role::input);
    const OperandId sum = carried_rows("encoded.grad", seq_len());
    if (!norms_encoder()) return sum;
    const OperandId dy = rows("y.grad", Role::temporary);
    norm_backward("encoder_norm", sum, output_rows(), std::nullopt, dy);
    return dy;
  }
  OperandId cross_forward(OperandId in);
  OperandId cross_backward(OperandId dy);
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

  LayerPlace place_;
  std::unique_ptr<MixerBuilder> mixer_, cross_;
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
  const OperandId y = output_rows();
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
  const OperandId y = output_rows();
  const OperandId mlp_out = rows("down.out", of_branches);
  const OperandId projected = rows("projection.out", of_branches);
  mixer_->project(projected);
  const OperandId middle = rows("middle", Role::saved);
  add("attention.add", x, normed_output("norm1", projected), middle, mixer_->has_bias());
  const OperandId crossed = cross_ ? cross_forward(middle) : middle;
  channel_->forward(normed_input("norm2", crossed), mlp_out);
  add("mlp.add", crossed, normed_output("norm2", mlp_out), y, channel_->has_bias());
}

/// Cross-attention and its residual addition, of what the mixer's gave.
OperandId LayerBuilder::cross_forward(OperandId in) {
  const bool after = model().norms.after_residual;
  const OperandId normed = rows("norm_cross.out", Role::saved);
  if (!after) norm("norm_cross", in, normed);
  cross_->mix(after ? in : normed);
  const OperandId projected = rows("cross.projection.out", Role::temporary);
  cross_->project(projected);
  const OperandId sum = rows(after ? "cross.sum" : "crossed", Role::saved);
  add("cross.add", in, projected, sum, cross_->has_bias());
  if (!after) return sum;
  norm("norm_cross", sum, normed);
  return normed;
}

/// From the gradient of what cross_forward gave to that of what it read.
OperandId LayerBuilder::cross_backward(OperandId dy) {
  const OperandId normed = rows("norm_cross.out", Role::saved);
  if (model().norms.after_residual) {
    const OperandId in = rows("norm1.out", Role::saved);
    const OperandId d_sum = rows("cross.sum.grad", Role::temporary);
    norm_backward("norm_cross", dy, rows("cross.sum", Role::saved), std::nullopt, d_sum);
    const OperandId d_branch = rows("cross.in.grad", Role::temporary);
    cross_->backward(in, add_backward("cross.add", d_sum, cross_->has_bias()), d_branch);
    const OperandId d_in = rows("cross.branches.grad", Role::temporary);
    block_.add(OpKind::add, "cross.branches", {d_branch, d_sum}, {d_in});
    return d_in;
  }
  const OperandId d_normed = rows("norm_cross.out.grad", Role::temporary);
  cross_->backward(normed, add_backward("cross.add", dy, cross_->has_bias()), d_normed);
  const OperandId d_in = rows("middle.grad", Role::temporary);
  norm_backward("norm_cross", d_normed, rows("middle", Role::saved), dy, d_in);
  return d_in;
}

void LayerBuilder::sequential_backward(OperandId dy, OperandId dx, OperandId x) {
  const OperandId d_mlp = add_backward("mlp.add", dy, channel_->has_bias());
  const bool reads_x = model().norms.of_outputs;
  const OperandId n1 = reads_x ? x : rows("norm1.out", Role::saved);
  const OperandId d_n1 = rows("norm1.out.grad", Role::temporary);
  const OperandId d_n2 = rows("norm2.out.grad", Role::temporary);
  const OperandId middle = rows(cross_ ? "crossed" : "middle", Role::saved);
  OperandId d_middle = rows(cross_ ? "crossed.grad" : "middle.grad", Role::temporary);
  channel_->backward(reads_x ? middle : rows("norm2.out", Role::saved),
                     output_backward("norm2", "down.out", d_mlp), d_n2);
  input_backward("norm2", d_n2, middle, dy, d_middle);
  if (cross_) d_middle = cross_backward(d_middle);
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
  const OperandId y = output_rows();
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
  const OperandId x = input_rows(Role::input);
  mixer_->mix(x);
  const OperandId projected = rows("projection.out", Role::temporary);
  mixer_->project(projected);
  const OperandId sum = rows("attention.sum", Role::saved);
  add("attention.add", x, projected, sum, mixer_->has_bias());
  const OperandId middle = rows("norm1.out", Role::saved);
  norm("norm1", sum, middle);
  const OperandId crossed = cross_ ? cross_forward(middle) : middle;
  const OperandId mlp_out = rows("down.out", Role::temporary);
  channel_->forward(crossed, mlp_out);
  const OperandId last = rows("mlp.sum", Role::saved);
  add("mlp.add", crossed, mlp_out, last, channel_->has_bias());
  norm("norm2", last, output_rows());
}

/// The gradients of a branch and of its residual are summed once both are known.
void LayerBuilder::post_norm_backward() {
  const OperandId dy = output_gradient();
  const OperandId dx = input_gradient();
  const OperandId x = input_rows(Role::saved);
  const OperandId middle = rows(cross_ ? "norm_cross.out" : "norm1.out", Role::saved);
  const OperandId d_last = rows("mlp.sum.grad", Role::temporary);
  norm_backward("norm2", dy, rows("mlp.sum", Role::saved), std::nullopt, d_last);
  const OperandId d_mlp = add_backward("mlp.add", d_last, channel_->has_bias());
  const OperandId of_mlp = rows("up.in.grad", Role::temporary);
  channel_->backward(middle, d_mlp, of_mlp);
  OperandId d_middle = rows(cross_ ? "norm_cross.out.grad" : "norm1.out.grad", Role::temporary);
  block_.add(OpKind::add, "mlp.branches", {of_mlp, d_last}, {d_middle});
  if (cross_) d_middle = cross_backward(d_middle);
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
    end_encoder();
    return block_.finish();
  }
  const OperandId x = input_rows(Role::input);
  const OperandId n1 = normed_input("norm1", x);
  if (!mixer_ || !channel_) {
    single_forward(x, n1);
  } else if (model().parallel_block) {
    parallel_forward(x, n1);
  } else {
    sequential_forward(x, n1);
  }
  end_encoder();
  return block_.finish();
}

Block LayerBuilder::backward() {
  if (model().norms.after_residual) {
    post_norm_backward();
    return block_.finish();
  }
  const OperandId dy = output_gradient();
  const OperandId dx = input_gradient();
  const OperandId x = input_rows(Role::saved);
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

BlockPair layer_blocks(const BlockInputs& inputs, const Layer& layer, LayerPlace place) {
  if (const ListedPart* const listed = layer.listed()) return listed_blocks(inputs, *listed);
  BlockPair pair{LayerBuilder{inputs, layer, place, Pass::forward}.forward(),
                 LayerBuilder{inputs, layer, place, Pass::backward}.backward()};
  if (layer.cross && inputs.model.encoder->given()) {
    std::erase_if(pair.backward.operations,
                  [](const Operation& op) { return op.name == "cross.key_value.dgrad"; });
    link(pair.backward);
  }
  if (!layer.encodes()) return pair;
  for (Block* const block : {&pair.forward, &pair.backward}) {
    for (Operation& op : block->operations) op.seq_len = inputs.plan.batch.seq_len;
  }
  return pair;
}

}  // namespace orrery::models
