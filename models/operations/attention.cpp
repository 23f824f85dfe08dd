// The attention core of a layer: rotary positions and per-head norms, then either one fused kernel
// or scores, softmax and context one by one.

#include "models/operations/layer.hpp"

namespace orrery::models {

bool LayerBuilder::fused_attention() const {
  // Fused kernels exist for 16-bit storage only.
  return bits(storage_) == 16 && inputs_.software.attention(inputs_.generation) != "unfused";
}

AttentionShape LayerBuilder::attention_shape() const {
  return {.batch = shares_.sequences,
          .seq = shares_.seq,
          .heads = shares_.heads,
          .kv_heads = shares_.kv_heads,
          .head_dim = shares_.head_dim,
          .causal = inputs_.model.causal,
          .window = inputs_.model.sliding_window};
}

OperandId LayerBuilder::scores(std::string_view name, Role role, DType dtype) {
  return block_.operand(name, role, dtype,
                        {shares_.sequences * shares_.heads, shares_.seq, shares_.seq});
}

GemmShape LayerBuilder::per_head(std::int64_t m, std::int64_t n, std::int64_t k) const {
  return {.m = m, .n = n, .k = k, .batch = shares_.sequences * shares_.heads};
}

void LayerBuilder::product(Product which, std::string_view name, OperandId a, OperandId b,
                           OperandId out, const GemmShape& shape) {
  Operation& op = block_.batched_gemm(name, a, b, out, shape, storage_);
  const Bytes square =
      multiplied<Bytes>(shares_.sequences, shares_.heads, shares_.seq, shares_.seq);
  const std::int64_t columns = shares_.query + shares_.key_value;
  const Bytes elements = square + multiplied<Bytes>(shares_.tokens, columns);
  op.bytes = Bytes{(elements * bits(storage_)).count() / 8};
  op.attention = attention_shape();
  op.product = which;
  op.attention_core = op.pass == Pass::forward;
}

void LayerBuilder::attention_forward() {
  const Model& model = inputs_.model;
  const std::int64_t columns = qkv().out;
  OperandId qkv_out = tokens("qkv.out", Role::saved, columns);
  if (model.qk_norm) {
    const OperandId normed = tokens("qkv.normed", Role::saved, columns);
    const OperandId weight =
        block_.operand("qk_norm.weight", Role::parameter, storage_, {1, 2, shares_.head_dim});
    block_.add(OpKind::norm, "qk_norm", {qkv_out, weight}, {normed});
    qkv_out = normed;
  }
  const OperandId out = tokens("attention.out", Role::saved, shares_.query);
  if (model.positions == Positions::rotary) {
    Operation& op = block_.add(OpKind::rotary, "rotary", {qkv_out}, {qkv_out});
    // Queries and keys are turned in place; values stay untouched.
    op.bytes = Bytes{op.bytes.count() / columns * (shares_.query + shares_.key_value)};
  }
  if (fused_attention()) {
    const OperandId lse = block_.operand("attention.lse", Role::saved, DType::fp32,
                                         {shares_.sequences, shares_.heads, shares_.seq});
    Operation& op = block_.add(OpKind::attention, "attention", {qkv_out}, {out, lse});
    op.time_class = TimeClass::attention;
    op.attention = attention_shape();
    op.attention_core = true;
    op.flops = BlockBuilder::attention_flops(op.attention);
    return;
  }
  const OperandId raw = scores("scores", Role::temporary, storage_);
  const OperandId probabilities = scores("probabilities", Role::saved, storage_);
  GemmShape square = per_head(shares_.seq, shares_.seq, shares_.head_dim);
  square.transpose_b = true;
  product(Product::scores, "scores", qkv_out, qkv_out, raw, square);
  Operation& softmax = block_.add(OpKind::softmax, "softmax", {raw}, {probabilities});
  softmax.attention = attention_shape();
  softmax.attention_core = true;
  OperandId weights = probabilities;
  if (inputs_.software.kernels.dropout) {
    const OperandId mask = scores("attention.mask", Role::saved, DType::uint8);
    weights = scores("probabilities.dropped", Role::saved, storage_);
    block_.add(OpKind::add, "attention.dropout", {probabilities}, {weights, mask}).attention_core =
        true;
  }
  product(Product::context, "context", weights, qkv_out, out,
          per_head(shares_.seq, shares_.head_dim, shares_.seq));
}

/// Four products: dV = P' dO, dP = dO V', dQ = dS K, dK = dS' Q, and dS by the softmax's backward.
void LayerBuilder::unfused_backward(OperandId qkv_out, OperandId gradient_out,
                                    OperandId gradient_in) {
  const bool dropout = inputs_.software.kernels.dropout;
  const OperandId probabilities = scores("probabilities", Role::saved, storage_);
  const OperandId weights =
      dropout ? scores("probabilities.dropped", Role::saved, storage_) : probabilities;
  const OperandId d_weights = scores("probabilities.grad", Role::temporary, storage_);
  const OperandId d_scores = scores("scores.grad", Role::temporary, storage_);
  GemmShape square = per_head(shares_.seq, shares_.seq, shares_.head_dim);
  square.transpose_b = true;
  const GemmShape tall = per_head(shares_.seq, shares_.head_dim, shares_.seq);
  GemmShape turned = tall;
  turned.transpose_a = true;
  product(Product::weights_gradient, "context.dgrad", gradient_out, qkv_out, d_weights, square);
  product(Product::value_gradient, "value.grad", weights, gradient_out, gradient_in, turned);
  if (dropout) {
    const OperandId mask = scores("attention.mask", Role::saved, DType::uint8);
    block_.add(OpKind::add_backward, "attention.dropout.backward", {d_weights, mask}, {d_weights});
  }
  Operation& softmax = block_.add(OpKind::softmax_backward, "softmax.backward",
                                  {d_weights, probabilities}, {d_scores});
  softmax.attention = attention_shape();
  product(Product::query_gradient, "query.grad", d_scores, qkv_out, gradient_in, tall);
  product(Product::key_gradient, "key.grad", d_scores, qkv_out, gradient_in, turned);
}

void LayerBuilder::attention_backward(OperandId gradient_out, OperandId gradient_in) {
  const Model& model = inputs_.model;
  const std::int64_t columns = qkv().out;
  const OperandId qkv_out = tokens(model.qk_norm ? "qkv.normed" : "qkv.out", Role::saved, columns);
  const OperandId out = tokens("attention.out", Role::saved, shares_.query);
  if (fused_attention()) {
    const OperandId lse = block_.operand("attention.lse", Role::saved, DType::fp32,
                                         {shares_.sequences, shares_.heads, shares_.seq});
    Operation& op = block_.add(OpKind::attention_backward, "attention.backward",
                               {qkv_out, out, lse, gradient_out}, {gradient_in});
    op.time_class = TimeClass::attention;
    op.attention = attention_shape();
    // Five products of the forward's two: the scores are computed again.
    op.flops = Flops{BlockBuilder::attention_flops(op.attention).count() / 2} * 5;
  } else {
    unfused_backward(qkv_out, gradient_out, gradient_in);
  }
  if (model.positions == Positions::rotary) {
    Operation& op =
        block_.add(OpKind::rotary_backward, "rotary.backward", {gradient_in}, {gradient_in});
    op.bytes = Bytes{op.bytes.count() / columns * (shares_.query + shares_.key_value)};
  }
  if (model.qk_norm) {
    const OperandId weight =
        block_.operand("qk_norm.weight", Role::parameter, storage_, {1, 2, shares_.head_dim});
    const OperandId weight_gradient =
        block_.operand("qk_norm.weight.grad", Role::gradient, gradient_, {1, 2, shares_.head_dim});
    block_.add(OpKind::norm_backward, "qk_norm.backward",
               {gradient_in, tokens("qkv.out", Role::saved, columns), weight},
               {gradient_in, weight_gradient});
  }
}

}  // namespace orrery::models
