// Attention with fp8 matrix products. A pass casts queries, keys and values, and in backward the
// output gradient, to 8 bits; the kernel's 8-bit output is cast back to 16 bits for its consumers.
// Backward reads the 8-bit copies that forward saved; the 16-bit queries, keys, values and output
// are counted as saved, too. Left out: the passes that find a tensor's amax.
// Source  NVIDIA Transformer Engine, attention/dot_product_attention/backends.py: FusedAttnFunc
//         with fp8_dpa and without fp8_mha; NVTE_FP8_DPA_BWD is 1 by default

#include "models/operations/layer.hpp"

namespace orrery::models {

OperandId LayerBuilder::in_8_bits(OperandId of, Role role) {
  const Operand wide = block_.at(of);
  return block_.operand(wide.name + ".narrow", role, DType::fp8, wide.uncut, wide.sharding);
}

void LayerBuilder::fp8_attention_forward(OperandId qkv_out, OperandId out) {
  const OperandId qkv = in_8_bits(qkv_out, Role::saved), made = in_8_bits(out, Role::saved);
  block_.add(OpKind::quantise, "attention.qkv.narrow", {qkv_out}, {qkv}).module.attention_core =
      true;
  Operation& op = block_.add(OpKind::attention, "attention", {qkv}, {made, log_sum_exp()});
  op.time_class = TimeClass::attention;
  op.mutable_attention() = attention_shape();
  op.module.attention_core = true;
  op.flops = attended(op.mutable_attention());
  block_.add(OpKind::quantise, "attention.widen", {made}, {out}).module.attention_core = true;
}

void LayerBuilder::fp8_attention_backward(OperandId qkv_out, OperandId out, OperandId gradient_out,
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
  block_.add(OpKind::quantise, "attention.grad.widen", {made}, {gradient_in});
}

}  // namespace orrery::models
