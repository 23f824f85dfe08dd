// Attention as a layer's mixer: queries, keys and values, norms of heads, rotary positions, the
// exchange of tokens for heads, the core, and the output projection.

#include <memory>

#include "models/operations/parts/context.hpp"
#include "models/operations/parts/core.hpp"
#include "models/operations/parts/latent.hpp"
#include "models/operations/parts/part.hpp"
#include "models/operations/parts/sparse.hpp"

namespace orrery::models {

namespace {

class AttentionBuilder : public MixerBuilder, private AttentionOperands {
 public:
  AttentionBuilder(BlockScope& scope, const AttentionPart& attention)
      : AttentionOperands{scope, attention},
        core_{scope, attention},
        context_{scope, attention},
        latents_{scope, attention},
        selection_{scope, attention} {}

  void mix(OperandId in) override;
  void project(OperandId out) override { linear_.forward(projection(), projected(), out); }
  void backward(OperandId saved_in, OperandId gradient_out, OperandId gradient_in) override;
  bool has_bias() const override { return attention_.output_bias; }

 private:
  Linear qkv() const {
    return linear_of(matrix_of(matrices_of(attention_, hidden()), "qkv"), heads_layout(attention_));
  }
  Linear projection() const {
    return linear_of(matrix_of(matrices_of(attention_, hidden()), "projection"),
                     by_rows(attention_.value_width()));
  }
  /// What the output projection reads.
  OperandId projected() {
    return output_columns(attention_.gated ? "attention.gated" : "attention.out", Role::saved);
  }
  void gate();
  void gate_backward(OperandId gradient_gated, OperandId gradient_out, OperandId d_qkv);
  ModelTensor head_norm() const {
    return {
        .name = "qk_norm.weight", .uncut = {1, 2, attention_.head_dim}, .initial = initial_scale()};
  }
  /// Latent attention rotates while it joins the shared part of the keys to the heads instead.
  bool rotates_heads() const {
    return inputs_.model.embedding.positions == Positions::rotary && !attention_.latents;
  }
  void rotary(OpKind kind, std::string_view name, OperandId qkv_out);
  /// What an unfused norm of queries and keys saves of them.
  OperandId unfused_head_norm() {
    const std::int64_t columns = attention_.query_columns() + attention_.key_columns();
    return block_.operand("qk_norm.unfused", Role::saved, unfused_dtype(), {1, tokens(), columns},
                          of_tokens(by_columns(attention_.head_dim)));
  }
  OperandId head_norm_forward(OperandId qkv_out);
  void head_norm_backward(OperandId gradient_in);
  /// The core's operations of this kind attend to selected tokens.
  void narrow(OpKind kind, double factor) {
    for (Operation& each : block_.since(0)) {
      if (each.kind == kind) selection_.narrow(each, factor);
    }
  }
  void attend(OperandId qkv_out);
  void attend_backward(OperandId gradient_out, OperandId gradient_in);

  /// Are keys on other ranks of the context group than their queries?
  bool lacks_keys() const {
    return split().pieces > 1 && !attends_within_rank(attention_, inputs_.plan);
  }
  /// The same columns in attention's layout; the operand itself without Ulysses.
  OperandId by_heads(OperandId of, std::string_view name, Role role);
  void head_all_to_all(std::string_view name, OperandId from, OperandId to);

  AttentionCore core_;
  ContextAttention context_;
  LatentQkv latents_;
  SparseSelection selection_;
};

/// In place, on queries and keys only: the traffic leaves out the values.
void AttentionBuilder::rotary(OpKind kind, std::string_view name, OperandId qkv_out) {
  Operation& op = block_.add(kind, name, {qkv_out}, {qkv_out});
  op.mutable_heads() = head_columns();
  Rotary rotary = inputs_.model.embedding.rotary;
  if (attention_.rotary_base) rotary = {.base = *attention_.rotary_base, .share = rotary.share};
  op.mutable_frequencies() = rotary_frequencies(rotary, attention_.head_dim);
  op.mutable_magnitude() = rotary.magnitude;
  const std::int64_t rotated = (op.heads().queries + op.heads().keys) * op.heads().dim;
  op.bytes = Bytes{op.bytes.count() / block_.at(qkv_out).shape[2] * rotated};
}

OperandId AttentionBuilder::head_norm_forward(OperandId qkv_out) {
  const OperandId normed = qkv_columns("qkv.normed", Role::saved);
  Operation& norm =
      block_.add(OpKind::norm, "qk_norm", {qkv_out, parameter(head_norm())}, {normed});
  norm.mutable_heads() = head_columns();
  set_norm(norm);
  if (unfused_norms()) save_besides(norm, unfused_head_norm());
  return normed;
}

void AttentionBuilder::head_norm_backward(OperandId gradient_in) {
  const OperandId weight = parameter(head_norm());
  const OperandId weight_gradient = gradient(head_norm(), gradient_in);
  Operation& norm = block_.add(OpKind::norm_backward, "qk_norm.backward",
                               {gradient_in, qkv_columns("qkv.out", Role::saved), weight},
                               {gradient_in, weight_gradient});
  norm.mutable_heads() = head_columns();
  set_norm(norm);
  if (unfused_norms()) read_besides(norm, unfused_head_norm());
}

OperandId AttentionBuilder::by_heads(OperandId of, std::string_view name, Role role) {
  if (block_.mesh().degree(MeshAxis::context_heads) == 1) return of;
  const Operand& source = block_.at(of);
  Sharding layout = source.sharding;
  const bool grouped = source.uncut[2] != output_width();
  if (grouped) layout.column_groups = heads_layout(attention_).column_groups;
  return block_.operand(name, role, source.dtype, source.uncut,
                        of_heads(layout, Dimension::rows, Dimension::columns, attention_.head_dim));
}

void AttentionBuilder::head_all_to_all(std::string_view name, OperandId from, OperandId to) {
  if (from == to) return;
  block_.collective(Collective::all_to_all, name, CommunicatorRole::context_heads, from, to);
}

void AttentionBuilder::mix(OperandId in) {
  const OperandId out = qkv_columns("qkv.out", Role::saved);
  if (attention_.latents) {
    latents_.forward(in, out);
    selection_.forward(in);
  } else {
    linear_.forward(qkv(), in, out);
  }
  attend(attention_.qk_norm ? head_norm_forward(out) : out);
  if (attention_.gated) gate();
}

/// Multiplies the output by a sigmoid of the gate's columns, as many as the queries'.
void AttentionBuilder::gate() {
  const OperandId out = output_columns("attention.out", Role::saved);
  const OperandId gated = projected();
  Operation& op = block_.add(OpKind::activation, "attention.gate",
                             {out, qkv_columns("qkv.out", Role::saved)}, {gated});
  op.bytes = block_.at(out).bytes() * 3;
  op.mutable_gates() = GatedColumns::heads;
  op.mutable_heads() = head_columns();
}

void AttentionBuilder::gate_backward(OperandId gradient_gated, OperandId gradient_out,
                                     OperandId d_qkv) {
  const OperandId out = output_columns("attention.out", Role::saved);
  Operation& op =
      block_.add(OpKind::activation_backward, "attention.gate.backward",
                 {gradient_gated, out, qkv_columns("qkv.out", Role::saved)}, {gradient_out, d_qkv});
  op.dtype = storage_;
  op.bytes = block_.at(out).bytes() * 5;
  op.mutable_gates() = GatedColumns::heads;
  op.mutable_heads() = head_columns();
}

void AttentionBuilder::attend(OperandId qkv_out) {
  const OperandId out = output_columns("attention.out", Role::saved);
  if (rotates_heads()) rotary(OpKind::rotary, "rotary", qkv_out);
  const OperandId qkv = by_heads(qkv_out, "attention.qkv", Role::saved);
  const OperandId by_head = by_heads(out, "attention.heads", Role::saved);
  head_all_to_all("qkv.all_to_all", qkv_out, qkv);
  if (lacks_keys()) {
    context_.forward(qkv, by_head);
  } else {
    core_.forward(qkv, by_head);
    narrow(OpKind::attention, 1);
  }
  head_all_to_all("attention.all_to_all", by_head, out);
}

void AttentionBuilder::attend_backward(OperandId gradient_out, OperandId gradient_in) {
  const OperandId qkv_out = qkv_columns(attention_.qk_norm ? "qkv.normed" : "qkv.out", Role::saved);
  const OperandId d_out = by_heads(gradient_out, "attention.heads.grad", Role::temporary);
  const OperandId d_qkv = by_heads(gradient_in, "attention.qkv.grad", Role::temporary);
  head_all_to_all("attention.grad.all_to_all", gradient_out, d_out);
  const OperandId qkv = by_heads(qkv_out, "attention.qkv", Role::saved);
  const OperandId out =
      by_heads(output_columns("attention.out", Role::saved), "attention.heads", Role::saved);
  if (lacks_keys()) {
    context_.backward(qkv, out, d_out, d_qkv);
  } else {
    core_.backward(qkv, out, d_out, d_qkv);
    narrow(OpKind::attention_backward, 2.5);
  }
  head_all_to_all("qkv.grad.all_to_all", d_qkv, gradient_in);
  if (rotates_heads()) rotary(OpKind::rotary_backward, "rotary.backward", gradient_in);
  if (attention_.qk_norm) head_norm_backward(gradient_in);
}

void AttentionBuilder::backward(OperandId saved_in, OperandId gradient_out, OperandId gradient_in) {
  const OperandId context = projected();
  const OperandId d_context = output_columns("attention.out.grad", Role::temporary);
  const OperandId d_qkv = qkv_columns("qkv.out.grad", Role::temporary);
  if (attention_.gated) {
    const OperandId d_gated = output_columns("attention.gated.grad", Role::temporary);
    linear_.backward(projection(), context, gradient_out, d_gated);
    gate_backward(d_gated, d_context, d_qkv);
  } else {
    linear_.backward(projection(), context, gradient_out, d_context);
  }
  attend_backward(d_context, d_qkv);
  if (attention_.indexer) selection_.backward(saved_in);
  if (attention_.latents) return latents_.backward(saved_in, d_qkv, gradient_in);
  linear_.backward(qkv(), saved_in, d_qkv, gradient_in);
}

}  // namespace

std::unique_ptr<MixerBuilder> attention_builder(BlockScope& scope, const AttentionPart& attention) {
  return std::make_unique<AttentionBuilder>(scope, attention);
}

}  // namespace orrery::models
