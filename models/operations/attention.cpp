// The attention core of a layer: per-head norms and rotary positions, then either one fused kernel
// or separate kernels for scores, softmax and context.

#include <cmath>

#include "models/operations/layer.hpp"
#include "models/plan/derived.hpp"
#include "models/plan/precision_formats.hpp"

namespace orrery::models {

namespace {

/// Format of the probabilities that an unfused softmax saves: fp32 under automatic mixed precision,
/// which casts them to 16 bits for the GEMM that reads them.
/// Source  "CUDA Ops that can autocast to float32" of PyTorch's documentation of torch.amp; the
///         softmax of PyTorch keeps its output for backward (tools/autograd/derivatives.yaml)
DType kept_probabilities(const Software& software, DType storage) {
  const bool casts = software.kernels.mixed_derate != 1 && bits(storage) == 16;
  return casts ? DType::fp32 : storage;
}

/// Counts the traffic of `probabilities` as if they were in `storage`: the profile's mixed_derate
/// already covers what fp32 and casts add.
void count_in_storage(Operation& op, const Operand& probabilities, DType storage) {
  const int wider = bits(probabilities.dtype) - bits(storage);
  op.bytes += Bytes{probabilities.elements() * wider / 8} * -1;
  op.dtype = storage;
}

/// Name of the probabilities that the GEMM with the values reads.
std::string_view weights_name(bool dropout, bool casts) {
  if (dropout) return "probabilities.dropped";
  return casts ? "probabilities.cast" : "probabilities";
}

}  // namespace

/// Fused kernels exist for 16-bit storage only. For attention sinks (a learned logit in the
/// softmax's sum) only cuDNN has one.
/// Source  NVIDIA/TransformerEngine, issues 2318 and 2483: with learnable sinks FlashAttention is
///         off and the fused kernel needs cuDNN 9.13.1 (of September 2025)
bool LayerBuilder::fused_attention() const {
  const std::string_view kernel =
      inputs_.software.attention(inputs_.generation, inputs_.plan.kernels.attention);
  if (inputs_.model.attention.sinks && kernel != "cudnn") return false;
  return bits(storage_) == 16 && kernel != "unfused";
}

std::int64_t LayerBuilder::local_heads(std::int64_t heads) const {
  return local_extent(heads, by_columns(), Dimension::columns, block_.mesh());
}

AttentionShape LayerBuilder::attention_shape() const {
  const Model& model = inputs_.model;
  const auto [ranks, pieces] = split();
  return {.batch = inputs_.plan.batch.micro,
          .seq = inputs_.plan.batch.seq_len / pieces,
          .heads = local_heads(model.attention.heads) / ranks,
          .kv_heads = local_heads(model.attention.kv_heads) / ranks,
          .head_dim = model.attention.head_dim,
          .causal = model.causal,
          .window = model.attention.window,
          .value_dim = model.latent.value_dim,
          .score_factor = model.embedding.rotary.score_factor};
}

/// Forward FLOPs of attention within parts of a sequence: the documents that are packed into it, as
/// many as fit, and the chunks of those, of which the last may be shorter. Sets `shape` to so many
/// attentions of one part's length.
Flops LayerBuilder::attended(AttentionShape& shape) const {
  const std::int64_t chunk = inputs_.model.attention.chunk, whole = shape.seq;
  const std::int64_t length = std::min(attended_length(inputs_.plan), whole);
  const std::int64_t part = chunk > 0 ? std::min(chunk, length) : length;
  if (part == whole) return BlockBuilder::attention_flops(shape);
  AttentionShape last = shape;
  last.seq = length % part;
  shape.seq = part;
  const Flops document =
      BlockBuilder::attention_flops(shape) * (length / part) + BlockBuilder::attention_flops(last);
  const auto in_sequence = [&](std::int64_t size) {
    return static_cast<double>(whole) / static_cast<double>(size);
  };
  shape.batch = std::llround(static_cast<double>(shape.batch) * in_sequence(part));
  return whole == length
             ? document
             : nearest_count<Flops>(static_cast<double>(document.count()) * in_sequence(length));
}

HeadColumns LayerBuilder::head_columns() const {
  const Model& model = inputs_.model;
  return {local_heads(model.attention.heads), local_heads(model.attention.kv_heads),
          model.attention.head_dim};
}

ModelTensor LayerBuilder::head_norm() const {
  return {.name = "qk_norm.weight",
          .uncut = {1, 2, inputs_.model.attention.head_dim},
          .initial = {Initial::Kind::ones}};
}

OperandId LayerBuilder::scores(std::string_view name, Role role, DType dtype) {
  const Plan& plan = inputs_.plan;
  Sharding by_head{MeshAxis::tensor, Dimension::matrices};
  by_head.cut(MeshAxis::context_heads) = Cut{Dimension::matrices};
  return block_.operand(
      name, role, dtype,
      {plan.batch.micro * inputs_.model.attention.heads, plan.batch.seq_len, plan.batch.seq_len},
      by_head);
}

OperandId LayerBuilder::log_sum_exp() {
  return block_.operand(
      "attention.lse", Role::saved, state_dtype(inputs_.plan.formats.precision),
      {inputs_.plan.batch.micro, inputs_.model.attention.heads, inputs_.plan.batch.seq_len},
      lse_layout());
}

GemmShape LayerBuilder::per_head(std::int64_t m, std::int64_t n, std::int64_t k) const {
  const std::int64_t heads = local_heads(inputs_.model.attention.heads) / split().heads;
  return {.m = m, .n = n, .k = k, .batch = inputs_.plan.batch.micro * heads};
}

void LayerBuilder::product(AttentionGemm which, std::string_view name, OperandId a, OperandId b,
                           OperandId out, const GemmShape& shape) {
  Operation& op = block_.batched_gemm(name, a, b, out, shape, storage_);
  op.mutable_attention() = attention_shape();
  const AttentionShape& of = op.attention();
  const Bytes square = multiplied<Bytes>(of.batch, of.heads, of.seq, of.seq);
  const std::int64_t columns = of.heads * of.head_dim + of.kv_heads * of.value_width();
  const Bytes elements = square + multiplied<Bytes>(tokens(), columns);
  op.bytes = Bytes{(elements * bits(storage_)).count() / 8};
  op.mutable_attention_gemm() = which;
  op.module.attention_core = op.pass == Pass::forward;
}

/// In place, on queries and keys only: the traffic leaves out the values.
void LayerBuilder::rotary(OpKind kind, std::string_view name, OperandId qkv_out) {
  Operation& op = block_.add(kind, name, {qkv_out}, {qkv_out});
  op.mutable_heads() = head_columns();
  op.mutable_frequencies() =
      rotary_frequencies(inputs_.model.embedding.rotary, inputs_.model.attention.head_dim);
  op.mutable_magnitude() = inputs_.model.embedding.rotary.magnitude;
  const std::int64_t rotated = (op.heads().queries + op.heads().keys) * op.heads().dim;
  op.bytes = Bytes{op.bytes.count() / block_.at(qkv_out).shape[2] * rotated};
}

void LayerBuilder::attention_forward() {
  const Model& model = inputs_.model;
  OperandId qkv_out = qkv_columns("qkv.out", Role::saved);
  if (model.attention.qk_norm) {
    const OperandId normed = qkv_columns("qkv.normed", Role::saved);
    Operation& norm =
        block_.add(OpKind::norm, "qk_norm", {qkv_out, parameter(head_norm())}, {normed});
    norm.mutable_heads() = head_columns();
    norm.mutable_norm() = model.norms.kind;
    norm.mutable_epsilon() = model.norms.epsilon;
    qkv_out = normed;
  }
  const OperandId out = attention_columns("attention.out", Role::saved);
  if (rotates_heads()) rotary(OpKind::rotary, "rotary", qkv_out);
  const OperandId qkv = by_heads(qkv_out, "attention.qkv", Role::saved);
  const OperandId by_head = by_heads(out, "attention.heads", Role::saved);
  head_all_to_all("qkv.all_to_all", qkv_out, qkv);
  core_forward(qkv, by_head);
  head_all_to_all("attention.all_to_all", by_head, out);
}

void LayerBuilder::core_forward(OperandId qkv_out, OperandId out) {
  if (split().pieces > 1 && !attends_within_rank(inputs_.model, inputs_.plan)) {
    const bool gathers = gathers_keys(inputs_.plan);
    return gathers ? gathered_forward(qkv_out, out) : ring_forward(qkv_out, out);
  }
  if (!fused_attention() && split().pieces == 1) return unfused_forward(qkv_out, out);
  if (inputs_.plan.formats.low_precision_attention) return fp8_attention_forward(qkv_out, out);
  Operation& op = block_.add(OpKind::attention, "attention", {qkv_out}, {out, log_sum_exp()});
  op.time_class = TimeClass::attention;
  op.mutable_attention() = attention_shape();
  op.module.attention_core = true;
  op.flops = attended(op.mutable_attention());
}

void LayerBuilder::unfused_forward(OperandId qkv_out, OperandId out) {
  const std::int64_t s = inputs_.plan.batch.seq_len, d = inputs_.model.attention.head_dim;
  const std::int64_t v = value_width(inputs_.model);
  const OperandId raw = scores("scores", Role::temporary, storage_);
  const DType kept = kept_probabilities(inputs_.software, storage_);
  const OperandId probabilities = scores("probabilities", Role::saved, kept);
  GemmShape square = per_head(s, s, d);
  square.transpose_b = true;
  product(AttentionGemm::scores, "scores", qkv_out, qkv_out, raw, square);
  Operation& softmax = block_.add(OpKind::softmax, "softmax", {raw}, {probabilities});
  softmax.mutable_attention() = attention_shape();
  softmax.module.attention_core = true;
  count_in_storage(softmax, block_.at(probabilities), storage_);
  OperandId weights = probabilities;
  if (inputs_.software.kernels.dropout) {
    const OperandId mask = scores("attention.mask", Role::saved, DType::uint8);
    weights = scores(weights_name(true, false), Role::saved, storage_);
    Operation& drop =
        block_.add(OpKind::add, "attention.dropout", {probabilities}, {weights, mask});
    drop.module.attention_core = true;
    count_in_storage(drop, block_.at(probabilities), storage_);
  } else if (kept != storage_) {
    weights = scores(weights_name(false, true), Role::saved, storage_);
    block_.write(softmax, weights);
    softmax.bytes += block_.at(weights).bytes() * -1;
  }
  product(AttentionGemm::context, "context", weights, qkv_out, out, per_head(s, v, s));
}

/// Four GEMMs: dV = P' dO, dP = dO V', dQ = dS K, dK = dS' Q, with dS from the softmax's backward.
void LayerBuilder::unfused_backward(OperandId qkv_out, OperandId gradient_out,
                                    OperandId gradient_in) {
  const std::int64_t s = inputs_.plan.batch.seq_len, d = inputs_.model.attention.head_dim;
  const bool dropout = inputs_.software.kernels.dropout;
  const DType kept = kept_probabilities(inputs_.software, storage_);
  const OperandId probabilities = scores("probabilities", Role::saved, kept);
  const OperandId weights = scores(weights_name(dropout, kept != storage_), Role::saved, storage_);
  const OperandId d_weights = scores("probabilities.grad", Role::temporary, storage_);
  const OperandId d_scores = scores("scores.grad", Role::temporary, storage_);
  const std::int64_t v = value_width(inputs_.model);
  GemmShape square = per_head(s, s, v);
  square.transpose_b = true;
  const GemmShape tall = per_head(s, d, s);
  GemmShape transposed = tall, of_values = per_head(s, v, s);
  transposed.transpose_a = of_values.transpose_a = true;
  product(AttentionGemm::weights_gradient, "context.dgrad", gradient_out, qkv_out, d_weights,
          square);
  product(AttentionGemm::value_gradient, "value.grad", weights, gradient_out, gradient_in,
          of_values);
  if (dropout) {
    const OperandId mask = scores("attention.mask", Role::saved, DType::uint8);
    block_.add(OpKind::add_backward, "attention.dropout.backward", {d_weights, mask}, {d_weights});
  }
  Operation& softmax = block_.add(OpKind::softmax_backward, "softmax.backward",
                                  {d_weights, probabilities}, {d_scores});
  softmax.mutable_attention() = attention_shape();
  count_in_storage(softmax, block_.at(probabilities), storage_);
  product(AttentionGemm::query_gradient, "query.grad", d_scores, qkv_out, gradient_in, tall);
  product(AttentionGemm::key_gradient, "key.grad", d_scores, qkv_out, gradient_in, transposed);
}

void LayerBuilder::core_backward(OperandId qkv_out, OperandId out, OperandId gradient_out,
                                 OperandId gradient_in) {
  if (split().pieces > 1 && !attends_within_rank(inputs_.model, inputs_.plan)) {
    const bool gathers = gathers_keys(inputs_.plan);
    return gathers ? gathered_backward(qkv_out, out, gradient_out, gradient_in)
                   : ring_backward(qkv_out, out, gradient_out, gradient_in);
  }
  if (!fused_attention() && split().pieces == 1) {
    return unfused_backward(qkv_out, gradient_out, gradient_in);
  }
  if (inputs_.plan.formats.low_precision_attention) {
    return fp8_attention_backward(qkv_out, out, gradient_out, gradient_in);
  }
  Operation& op = block_.add(OpKind::attention_backward, "attention.backward",
                             {qkv_out, out, log_sum_exp(), gradient_out}, {gradient_in});
  op.time_class = TimeClass::attention;
  op.mutable_attention() = attention_shape();
  // Five GEMMs where forward has two: the scores are computed again.
  op.flops = Flops{attended(op.mutable_attention()).count() / 2} * 5;
}

void LayerBuilder::attention_backward(OperandId gradient_out, OperandId gradient_in) {
  const Model& model = inputs_.model;
  const OperandId qkv_out =
      qkv_columns(model.attention.qk_norm ? "qkv.normed" : "qkv.out", Role::saved);
  const OperandId out = attention_columns("attention.out", Role::saved);
  const OperandId d_out = by_heads(gradient_out, "attention.heads.grad", Role::temporary);
  const OperandId d_qkv = by_heads(gradient_in, "attention.qkv.grad", Role::temporary);
  head_all_to_all("attention.grad.all_to_all", gradient_out, d_out);
  core_backward(by_heads(qkv_out, "attention.qkv", Role::saved),
                by_heads(out, "attention.heads", Role::saved), d_out, d_qkv);
  head_all_to_all("qkv.grad.all_to_all", d_qkv, gradient_in);
  if (rotates_heads()) {
    rotary(OpKind::rotary_backward, "rotary.backward", gradient_in);
  }
  if (model.attention.qk_norm) {
    const OperandId weight = parameter(head_norm());
    const OperandId weight_gradient = gradient(head_norm(), gradient_in);
    Operation& norm = block_.add(OpKind::norm_backward, "qk_norm.backward",
                                 {gradient_in, qkv_columns("qkv.out", Role::saved), weight},
                                 {gradient_in, weight_gradient});
    norm.mutable_heads() = head_columns();
    norm.mutable_norm() = model.norms.kind;
    norm.mutable_epsilon() = model.norms.epsilon;
  }
}

}  // namespace orrery::models
