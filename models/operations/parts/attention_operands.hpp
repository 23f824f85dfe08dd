#pragma once
// What the builders of attention share: its operands, its shape on a rank, and how context
// parallelism splits it.

#include "models/operations/transformer.hpp"
#include "models/plan/derived.hpp"

namespace orrery::models {

/// Of cross-attention: tokens of the sequence that keys and values are of. 0: a layer's attention
/// to its own tokens.
struct CrossOperands {
  std::int64_t keys = 0;

  /// The name of an operand or operation.
  std::string name(std::string_view own) const {
    return (keys > 0 ? "cross." : "") + std::string{own};
  }
};

class AttentionOperands : protected TransformerBuilder {
 public:
  AttentionOperands(BlockScope& scope, const AttentionPart& attention, CrossOperands crossing = {})
      : TransformerBuilder{scope}, attention_{attention}, crossing_{crossing} {
    storage_ = storage_dtype(inputs_.plan.formats.precision);  // what its kernels read
  }

 protected:
  /// [T, queries, keys and values]
  OperandId qkv_columns(std::string_view name, Role role) {
    return features(name, role, qkv_width(), heads_layout(attention_));
  }
  /// [T, values of all heads], attention's output.
  OperandId output_columns(std::string_view name, Role role) {
    return features(name, role, output_width(), by_columns(attention_.value_width()));
  }
  std::int64_t qkv_width() const {
    return attention_.query_columns() * (attention_.gated ? 2 : 1) + attention_.key_columns() +
           attention_.value_columns();
  }
  std::int64_t output_width() const { return attention_.heads * attention_.value_width(); }
  OperandId log_sum_exp();
  Sharding lse_layout() const {
    return of_heads(by_rows(), Dimension::columns, Dimension::rows, 1);
  }

  /// In attention a rank has 1 / `pieces` of the tokens; where ranks exchange tokens for heads
  /// (Ulysses), it has 1 / `heads` of the heads.
  ContextSplit split() const { return context_split(inputs_.plan); }
  std::int64_t local_heads(std::int64_t heads) const {
    return local_extent(heads, by_columns(), Dimension::columns, block_.mesh());
  }
  HeadColumns head_columns() const {
    return {local_heads(attention_.heads), local_heads(attention_.kv_heads), attention_.head_dim,
            attention_.gated};
  }
  AttentionShape attention_shape() const;
  /// Adds the sinks to what an attention or its softmax reads, and their gradient to what its
  /// backward writes; nothing without sinks. Of several attentions to parts of the keys, the one to
  /// a rank's own has them.
  void read_sinks(Operation& op);
  void write_sinks_gradient(Operation& op, OperandId gradient_out);

  const AttentionPart& attention_;
  CrossOperands crossing_;

 private:
  ModelTensor sinks() const {
    return {.name = "sinks",
            .uncut = {1, 1, attention_.heads},
            .sharding = by_columns(),
            .initial = {.deviation = inputs_.model.initial_deviation}};
  }
};

}  // namespace orrery::models
