// Fp8: a pass casts queries, keys and values, and in backward the output gradient, to 8 bits; the
// kernel's 8-bit output is cast back to 16 bits for its consumers. Backward reads the 8-bit copies
// that forward saved; the 16-bit queries, keys, values and output are counted as saved, too. Left
// out: the passes that find a tensor's amax.
// Source  NVIDIA Transformer Engine, attention/dot_product_attention/backends.py: FusedAttnFunc
//         with fp8_dpa and without fp8_mha; NVTE_FP8_DPA_BWD is 1 by default

#include "models/operations/parts/core.hpp"

#include <cmath>

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
bool AttentionCore::fused() const {
  const std::string_view kernel =
      inputs_.software.attention(inputs_.generation, inputs_.plan.kernels.attention);
  if (attention_.sinks && kernel != "cudnn") return false;
  return bits(storage_) == 16 && kernel != "unfused";
}

/// Forward FLOPs of attention within parts of a sequence: the documents that are packed into it, as
/// many as fit, and the chunks of those, of which the last may be shorter. Sets `shape` to so many
/// attentions of one part's length.
Flops AttentionCore::attended(AttentionShape& shape) const {
  const std::int64_t chunk = attention_.chunk, whole = shape.seq;
  const std::int64_t length = std::min(attended_length(inputs_.plan), whole);
  const std::int64_t part = chunk > 0 ? std::min(chunk, length) : length;
  if (part == whole || crossing_.keys > 0) return BlockBuilder::attention_flops(shape);
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

OperandId AttentionCore::scores(std::string_view own, Role role, DType dtype) {
  const Plan& plan = inputs_.plan;
  Sharding by_head{MeshAxis::tensor, Dimension::matrices};
  by_head.cut(MeshAxis::context_heads) = Cut{Dimension::matrices};
  return block_.operand(name(own), role, dtype,
                        {plan.batch.micro * attention_.heads, plan.batch.seq_len, keys()}, by_head);
}

GemmShape AttentionCore::per_head(std::int64_t m, std::int64_t n, std::int64_t k) const {
  const std::int64_t heads = local_heads(attention_.heads) / split().heads;
  return {.m = m, .n = n, .k = k, .batch = inputs_.plan.batch.micro * heads};
}

void AttentionCore::product(AttentionGemm which, std::string_view own, OperandId a, OperandId b,
                            OperandId out, const GemmShape& shape) {
  Operation& op = block_.batched_gemm(name(own), a, b, out, shape, storage_);
  op.mutable_attention() = attention_shape();
  const AttentionShape& of = op.attention();
  const Bytes square = multiplied<Bytes>(of.batch, of.heads, of.seq, keys());
  const Bytes elements =
      square + multiplied<Bytes>(tokens(), of.heads * of.head_dim) +
      multiplied<Bytes>(inputs_.plan.batch.micro * keys(), of.kv_heads * of.value_width());
  op.bytes = Bytes{(elements * bits(storage_)).count() / 8};
  op.mutable_attention_gemm() = which;
  op.module.attention_core = op.pass == Pass::forward;
}

void AttentionCore::forward(Sides in, OperandId out) {
  if (!fused() && split().pieces == 1) return unfused_forward(in, out);
  const bool narrow = inputs_.plan.formats.low_precision_attention && crossing_.keys == 0;
  if (narrow) return fp8_forward(in.queries, out);
  Operation& op =
      block_.add(OpKind::attention, name("attention"), {in.queries}, {out, log_sum_exp()});
  read_keys(op, in);
  op.time_class = TimeClass::attention;
  op.mutable_attention() = attention_shape();
  op.module.attention_core = true;
  op.flops = attended(op.mutable_attention());
  read_sinks(op);
}

void AttentionCore::unfused_forward(Sides in, OperandId out) {
  const std::int64_t s = inputs_.plan.batch.seq_len, d = attention_.head_dim;
  const std::int64_t v = attention_.value_width();
  const OperandId raw = scores("scores", Role::temporary, storage_);
  const DType kept = kept_probabilities(inputs_.software, storage_);
  const OperandId probabilities = scores("probabilities", Role::saved, kept);
  GemmShape square = per_head(s, keys(), d);
  square.transpose_b = true;
  product(AttentionGemm::scores, "scores", in.queries, in.keys, raw, square);
  Operation& softmax = block_.add(OpKind::softmax, name("softmax"), {raw}, {probabilities});
  softmax.mutable_attention() = attention_shape();
  softmax.module.attention_core = true;
  count_in_storage(softmax, block_.at(probabilities), storage_);
  read_sinks(softmax);
  OperandId weights = probabilities;
  if (inputs_.software.kernels.dropout) {
    const OperandId mask = scores("attention.mask", Role::saved, DType::uint8);
    weights = scores(weights_name(true, false), Role::saved, storage_);
    Operation& drop =
        block_.add(OpKind::add, name("attention.dropout"), {probabilities}, {weights, mask});
    drop.module.attention_core = true;
    count_in_storage(drop, block_.at(probabilities), storage_);
  } else if (kept != storage_) {
    weights = scores(weights_name(false, true), Role::saved, storage_);
    block_.write(softmax, weights);
    softmax.bytes += block_.at(weights).bytes() * -1;
  }
  product(AttentionGemm::context, "context", weights, in.keys, out, per_head(s, v, keys()));
}

/// Four GEMMs: dV = P' dO, dP = dO V', dQ = dS K, dK = dS' Q, with dS from the softmax's backward.
void AttentionCore::unfused_backward(Sides in, OperandId gradient_out, Sides gradient_in) {
  const std::int64_t s = inputs_.plan.batch.seq_len, d = attention_.head_dim;
  const bool dropout = inputs_.software.kernels.dropout;
  const DType kept = kept_probabilities(inputs_.software, storage_);
  const OperandId probabilities = scores("probabilities", Role::saved, kept);
  const OperandId weights = scores(weights_name(dropout, kept != storage_), Role::saved, storage_);
  const OperandId d_weights = scores("probabilities.grad", Role::temporary, storage_);
  const OperandId d_scores = scores("scores.grad", Role::temporary, storage_);
  const std::int64_t v = attention_.value_width();
  GemmShape square = per_head(s, keys(), v);
  square.transpose_b = true;
  const GemmShape tall = per_head(s, d, keys());
  GemmShape transposed = per_head(keys(), d, s), of_values = per_head(keys(), v, s);
  transposed.transpose_a = of_values.transpose_a = true;
  product(AttentionGemm::weights_gradient, "context.dgrad", gradient_out, in.keys, d_weights,
          square);
  product(AttentionGemm::value_gradient, "value.grad", weights, gradient_out, gradient_in.keys,
          of_values);
  if (dropout) {
    const OperandId mask = scores("attention.mask", Role::saved, DType::uint8);
    block_.add(OpKind::add_backward, name("attention.dropout.backward"), {d_weights, mask},
               {d_weights});
  }
  Operation& softmax = block_.add(OpKind::softmax_backward, name("softmax.backward"),
                                  {d_weights, probabilities}, {d_scores});
  softmax.mutable_attention() = attention_shape();
  count_in_storage(softmax, block_.at(probabilities), storage_);
  write_sinks_gradient(softmax, gradient_out);
  product(AttentionGemm::query_gradient, "query.grad", d_scores, in.keys, gradient_in.queries,
          tall);
  product(AttentionGemm::key_gradient, "key.grad", d_scores, in.queries, gradient_in.keys,
          transposed);
}

void AttentionCore::backward(Sides in, OperandId out, OperandId gradient_out, Sides gradient_in) {
  if (!fused() && split().pieces == 1) return unfused_backward(in, gradient_out, gradient_in);
  if (inputs_.plan.formats.low_precision_attention && crossing_.keys == 0) {
    return fp8_backward(in.queries, out, gradient_out, gradient_in.queries);
  }
  Operation& op = block_.add(OpKind::attention_backward, name("attention.backward"), {in.queries},
                             {gradient_in.queries});
  read_keys(op, in);
  for (const OperandId id : {out, log_sum_exp(), gradient_out}) block_.read(op, id);
  if (in.keys != in.queries) block_.write(op, gradient_in.keys);
  op.time_class = TimeClass::attention;
  op.mutable_attention() = attention_shape();
  // Five GEMMs where forward has two: the scores are computed again.
  op.flops = Flops{attended(op.mutable_attention()).count() / 2} * 5;
  write_sinks_gradient(op, gradient_out);
}

void AttentionCore::fp8_forward(OperandId qkv_out, OperandId out) {
  const OperandId qkv = in_8_bits(qkv_out, Role::saved), made = in_8_bits(out, Role::saved);
  block_.add(OpKind::quantise, "attention.qkv.narrow", {qkv_out}, {qkv}).module.attention_core =
      true;
  Operation& op = block_.add(OpKind::attention, "attention", {qkv}, {made, log_sum_exp()});
  op.time_class = TimeClass::attention;
  op.mutable_attention() = attention_shape();
  op.module.attention_core = true;
  op.flops = attended(op.mutable_attention());
  read_sinks(op);
  block_.add(OpKind::quantise, "attention.widen", {made}, {out}).module.attention_core = true;
}

void AttentionCore::fp8_backward(OperandId qkv_out, OperandId out, OperandId gradient_out,
                                 OperandId gradient_in) {
  const OperandId narrow_gradient = in_8_bits(gradient_out, Role::temporary);
  const OperandId made = in_8_bits(gradient_in, Role::temporary);
  block_.add(OpKind::quantise, "attention.grad.narrow", {gradient_out}, {narrow_gradient});
  Operation& op = block_.add(OpKind::attention_backward, "attention.backward",
                             {in_8_bits(qkv_out, Role::saved), in_8_bits(out, Role::saved),
                              log_sum_exp(), narrow_gradient},
                             {made});
  op.time_class = TimeClass::attention;
  op.mutable_attention() = attention_shape();
  op.flops = Flops{attended(op.mutable_attention()).count() / 2} * 5;
  write_sinks_gradient(op, gradient_out);
  block_.add(OpKind::quantise, "attention.grad.widen", {made}, {gradient_in});
}

}  // namespace orrery::models
