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
  void forward(OperandId qkv, OperandId out);
  void backward(OperandId qkv, OperandId out, OperandId gradient_out, OperandId gradient_in);

 private:
  Flops attended(AttentionShape& shape) const;
  OperandId scores(std::string_view name, Role role, DType dtype);  // [heads, s, s] per sequence
  GemmShape per_head(std::int64_t m, std::int64_t n, std::int64_t k) const;
  /// Batched GEMM of unfused attention, one product per head: between queries (or a tensor of their
  /// shape), keys or values, and an [s, s] matrix, whichever of the three is written.
  void product(AttentionGemm which, std::string_view name, OperandId a, OperandId b, OperandId out,
               const GemmShape& shape);
  void unfused_forward(OperandId qkv, OperandId out);
  void unfused_backward(OperandId qkv, OperandId gradient_out, OperandId gradient_in);
  void fp8_forward(OperandId qkv, OperandId out);
  void fp8_backward(OperandId qkv, OperandId out, OperandId gradient_out, OperandId gradient_in);
};

}  // namespace orrery::models
