#pragma once
// Writes one transformer layer, forward and backward, operation by operation. The two halves name
// the same saved operands; that is how one finds what the other kept.

#include "models/operations/linear.hpp"

namespace orrery::models {

class LayerBuilder {
 public:
  LayerBuilder(const BlockInputs& inputs, Pass pass);

  Block forward();
  Block backward();

 private:
  // Operands by the name that both halves use.
  OperandId rows(std::string_view name, Role role);                          // [S, h]
  OperandId tokens(std::string_view name, Role role, std::int64_t columns);  // [T, columns]
  OperandId scores(std::string_view name, Role role, DType dtype);  // [heads, s, s] per sequence
  Linear qkv() const;
  Linear projection() const;
  Linear up() const;
  Linear down() const;
  bool fused_attention() const;
  AttentionShape attention_shape() const;
  GemmShape per_head(std::int64_t m, std::int64_t n, std::int64_t k) const;
  /// One product per head, unfused: queries (or what has their shape), keys or values, and a
  /// [s, s] square, whichever of the three is written.
  void product(Product which, std::string_view name, OperandId a, OperandId b, OperandId out,
               const GemmShape& shape);

  void norm(std::string_view name, OperandId in, OperandId out);
  void norm_backward(std::string_view name, OperandId gradient, OperandId saved_in,
                     OperandId residual, OperandId out);
  void add(std::string_view name, OperandId residual, OperandId branch, OperandId out, bool bias);
  OperandId add_backward(std::string_view name, OperandId gradient, bool bias);
  void attention_forward();
  void attention_backward(OperandId gradient_out, OperandId gradient_in);
  void unfused_backward(OperandId qkv_out, OperandId gradient_out, OperandId gradient_in);
  void mlp_forward(OperandId in, OperandId out);
  void mlp_backward(OperandId saved_in, OperandId gradient_out, OperandId gradient_in);
  void parallel_backward(OperandId d_sum, OperandId dy, OperandId dx);

  const BlockInputs& inputs_;
  Shares shares_;
  DType storage_, gradient_;
  BlockBuilder block_;
  LinearBuilder linear_;
};

}  // namespace orrery::models
