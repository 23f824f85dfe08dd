#pragma once
// Writes one transformer layer, forward and backward, operation by operation. Backward finds the
// activations that forward saved by their names, which are the same in both.

#include <vector>

#include "models/operations/transformer.hpp"

namespace orrery::models {

class LayerBuilder : private TransformerBuilder {
 public:
  LayerBuilder(const BlockInputs& inputs, Pass pass);

  Block forward();
  Block backward();
  /// The same for post-norm layers: each norm is of x + branch(x), as BERT's (post_norm_layer.cpp).
  Block post_norm_forward();
  Block post_norm_backward();

 private:
  /// An MLP, and the prefix of its names: "" for the layer's own.
  struct Mlp {
    std::string prefix;
    std::int64_t width = 0;
    bool is_shared = false;  // the shared expert of a layer with experts
  };

  // Operands [T, columns] by name, which forward and backward share.
  OperandId qkv_columns(std::string_view name, Role role);        // queries, keys and values
  OperandId attention_columns(std::string_view name, Role role);  // attention's output
  OperandId up_columns(const Mlp& mlp, std::string_view name, Role role);  // gate and up, or up
  OperandId mlp_columns(const Mlp& mlp, std::string_view name, Role role);
  OperandId scores(std::string_view name, Role role, DType dtype);  // [heads, s, s] per sequence
  OperandId log_sum_exp();
  Sharding lse_layout() const;
  Linear qkv() const;
  Linear projection() const;
  Linear up(const Mlp& mlp) const;
  Linear down(const Mlp& mlp) const;
  Mlp own() const { return {"", inputs_.model.mlp.width}; }
  Mlp shared() const { return {"shared.", inputs_.model.experts.shared_width, true}; }
  bool fused_attention() const;
  std::int64_t local_heads(std::int64_t heads) const;
  AttentionShape attention_shape() const;
  Flops attended(AttentionShape& shape) const;
  HeadColumns head_columns() const;
  /// Latent attention rotates while it joins the shared part of the keys to the heads instead.
  bool rotates_heads() const {
    return inputs_.model.embedding.positions == Positions::rotary &&
           inputs_.model.latent.kv_rank == 0;
  }
  ModelTensor head_norm() const;
  GemmShape per_head(std::int64_t m, std::int64_t n, std::int64_t k) const;
  /// Batched GEMM of unfused attention, one product per head: between queries (or a tensor of their
  /// shape), keys or values, and an [s, s] matrix, whichever of the three is written.
  void product(AttentionGemm which, std::string_view name, OperandId a, OperandId b, OperandId out,
               const GemmShape& shape);

  void rotary(OpKind kind, std::string_view name, OperandId qkv_out);
  void add(const std::string& name, OperandId residual, OperandId branch, OperandId out, bool bias);
  OperandId add_backward(const std::string& name, OperandId gradient, bool bias);
  void attention_forward();
  void attention_backward(OperandId gradient_out, OperandId gradient_in);
  void core_forward(OperandId qkv_out, OperandId out);
  void core_backward(OperandId qkv_out, OperandId out, OperandId gradient_out,
                     OperandId gradient_in);
  OperandId in_8_bits(OperandId of, Role role);
  void fp8_attention_forward(OperandId qkv_out, OperandId out);
  void fp8_attention_backward(OperandId qkv_out, OperandId out, OperandId gradient_out,
                              OperandId gradient_in);

  // Context parallelism (context.cpp). In attention a rank has 1 / `pieces` of the tokens; where
  // ranks exchange tokens for heads (Ulysses), it has 1 / `heads` of the heads.
  ContextSplit split() const { return context_split(inputs_.plan); }
  /// The same columns in attention's layout; the operand itself without Ulysses.
  OperandId by_heads(OperandId of, std::string_view name, Role role);
  void head_all_to_all(std::string_view name, OperandId from, OperandId to);
  OperandId keys_and_values(const std::string& name, bool whole);
  AttentionShape rectangle(std::int64_t keys) const;
  Operation& partial_forward(const std::string& name, const AttentionShape& shape, OperandId qkv,
                             OperandId keys, OperandId out);
  Operation& partial_backward(const std::string& name, const AttentionShape& shape, OperandId qkv,
                              OperandId keys, OperandId out, OperandId gradient_out,
                              OperandId gradient_in);
  /// Attention shapes of the slowest rank of an all-gather.
  std::vector<AttentionShape> gathered_parts() const;
  static SequencePart gathered_part(std::size_t i, std::size_t parts);
  Operation& pass_keys(const std::string& name, OperandId from, OperandId to, std::int64_t ahead);
  void merge(const std::string& number, OperandId out, OperandId part);
  void gathered_forward(OperandId qkv, OperandId out);
  void gathered_backward(OperandId qkv, OperandId out, OperandId gradient_out,
                         OperandId gradient_in);
  void ring_forward(OperandId qkv, OperandId out);
  void ring_backward(OperandId qkv, OperandId out, OperandId gradient_out, OperandId gradient_in);
  void unfused_forward(OperandId qkv_out, OperandId out);
  void unfused_backward(OperandId qkv_out, OperandId gradient_out, OperandId gradient_in);
  Role role_of_inner() const;
  void keep_inner(OperandId inner);
  void restore_inner(OperandId inner);
  void mlp_forward(const Mlp& mlp, OperandId in, OperandId out);
  void mlp_backward(const Mlp& mlp, OperandId saved_in, OperandId gradient_out,
                    OperandId gradient_in);
  /// The layer's MLP, or its experts.
  void feed_forward(OperandId in, OperandId out);
  void feed_backward(OperandId saved_in, OperandId gradient_out, OperandId gradient_in);

  // Queries, keys and values: one GEMM, or latent attention (latent.cpp).
  void qkv_forward(OperandId in);
  void qkv_backward(OperandId saved_in, OperandId gradient, OperandId gradient_in);
  struct LatentPart;
  std::vector<LatentPart> latent_parts() const;
  ModelTensor latent_norm(const LatentPart& part) const;
  void latent_forward(const LatentPart& part, OperandId in);
  void expand(const LatentPart& part, OperandId from, OperandId heads);
  void latent_backward(const LatentPart& part, OperandId saved_in, OperandId gradient_in);
  OperandId shared_key_gradient();
  void join_shared_gradient(std::size_t first, OperandId normed);
  void rotates(Operation& op) const;

  // Experts (experts.cpp).
  std::int64_t rows_of_expert(OperandId tokens) const;
  OperandId expert_rows(std::string_view name, Role role, OperandId tokens, std::int64_t columns,
                        const Sharding& layout);
  OperandId routing(std::string_view name, Role role, DType dtype);
  OperandId chosen();
  OperandId weights();
  OperandId weights_gradient();
  DType weights_dtype() const;
  OperandId kept_outputs(OperandId tokens);
  bool keeps_outputs() const { return inputs_.software.runs.keeps_expert_outputs; }
  Linear router() const;
  Linear expert_up() const;
  Linear expert_down() const;
  Sharding expert_up_layout() const;
  Bytes rows_sent(OperandId rows) const;
  std::int64_t passes(std::int64_t apart, std::int64_t fused) const;
  bool sorts() const;
  TokenCopies copies_to_nodes() const;
  Bytes clamp_traffic(OperandId active, double passes) const;
  Operation& permute(RowMove move, const std::string& name, OperandId in, OperandId out);
  void sort(RowMove move, const std::string& name, OperandId in, OperandId out);
  void combine(OperandId tokens, OperandId back, OperandId routed);
  void combine_backward(OperandId tokens, OperandId gradient, OperandId rows_gradient);
  void route(OperandId in);
  void experts_forward(OperandId in, OperandId out);
  void local_experts_forward(OperandId tokens, OperandId rows);
  void experts_backward(OperandId saved_in, OperandId gradient_out, OperandId gradient_in);
  void local_experts_backward(OperandId tokens, OperandId gradient, OperandId rows_gradient);
  void route_backward(OperandId saved_in, OperandId gradient_in);
  void parallel_forward(OperandId x, OperandId n1, OperandId y);
  void parallel_backward(OperandId d_sum, OperandId dy, OperandId dx);
};

}  // namespace orrery::models
