#pragma once
// The attention core on a rank that has all keys of its queries: one fused kernel, one with fp8
// matrix products, or separate kernels for scores, softmax and context.

#include "models/operations/parts/attention_operands.hpp"

namespace orrery::models {

class AttentionCore : private AttentionOperands {
 public:
  using AttentionOperands::AttentionOperands;

  /// Is there one kernel for it?
  bool fused() const;
  void forward(OperandId qkv, OperandId out) { forward({qkv, qkv}, out); }
  void backward(OperandId qkv, OperandId out, OperandId gradient_out, OperandId gradient_in) {
    backward({qkv, qkv}, out, gradient_out, {gradient_in, gradient_in});
  }
  /// Queries, and what has keys and values: one operand, or of cross-attention two.
  struct Sides {
    OperandId queries = 0, keys = 0;
  };
  void forward(Sides in, OperandId out);
  void backward(Sides in, OperandId out, OperandId gradient_out, Sides gradient_in);

 private:
  std::int64_t keys() const {
    return crossing_.keys > 0 ? crossing_.keys : inputs_.plan.batch.seq_len;
  }
  std::string name(std::string_view own) const { return crossing_.name(own); }
  void read_keys(Operation& op, Sides in) const {
    if (in.keys != in.queries) block_.read(op, in.keys);
  }
  Flops attended(AttentionShape& shape) const;
  /// [heads, queries, keys] per sequence
  OperandId scores(std::string_view own, Role role, DType dtype);
  GemmShape per_head(std::int64_t m, std::int64_t n, std::int64_t k) const;
  /// Batched GEMM of unfused attention, one product per head: between queries (or a tensor of their
  /// shape), keys or values, and a [queries, keys] matrix, whichever of the three is written.
  void product(AttentionGemm which, std::string_view own, OperandId a, OperandId b, OperandId out,
               const GemmShape& shape);
  void unfused_forward(Sides in, OperandId out);
  void unfused_backward(Sides in, OperandId gradient_out, Sides gradient_in);
  void fp8_forward(OperandId qkv, OperandId out);
  void fp8_backward(OperandId qkv, OperandId out, OperandId gradient_out, OperandId gradient_in);
};

}  // namespace orrery::models
