// Cross-attention: queries of a layer's tokens T, keys and values of an encoder's output of S
// tokens, which every such layer reads (carried operand `encoded`). In backward each adds to the
// gradient of that output; the one that comes first begins the sum. Tensor parallelism cuts heads
// as those of attention: the output is gathered under sequence parallelism, its gradient summed.
//   query [T, h] x [h, a];  key and value [S, h] x [h, 2 k];  core 4 T S a;  [T, a] x [a, h]
// Leaves out rotary positions, norms and gates of heads.

#include <memory>

#include "models/operations/parts/core.hpp"
#include "models/operations/parts/part.hpp"

namespace orrery::models {

namespace {

class CrossAttentionBuilder : public MixerBuilder, private TransformerBuilder {
 public:
  CrossAttentionBuilder(BlockScope& scope, const CrossAttentionPart& cross, bool begins_sum)
      : TransformerBuilder{scope},
        cross_{cross},
        begins_sum_{begins_sum},
        source_{source_length(scope.inputs.model)},
        heads_{.heads = cross.heads, .kv_heads = cross.kv_heads, .head_dim = cross.head_dim},
        core_{scope, heads_, {.keys = source_}} {
    ensure(source_ > 0, "cross-attention without an encoder");
    storage_ = storage_dtype(inputs_.plan.formats.precision);  // what its kernels read
  }

  void mix(OperandId in) override {
    linear_.forward(query(), in, queries("query.out", Role::saved));
    linear_.forward(key_value(), encoded(), keys("key_value.out", Role::saved));
    core_.forward({queries("query.out", Role::saved), keys("key_value.out", Role::saved)},
                  queries("out", Role::saved));
  }
  void project(OperandId out) override {
    linear_.forward(projection(), queries("out", Role::saved), out);
  }

  void backward(OperandId saved_in, OperandId gradient_out, OperandId gradient_in) override {
    const OperandId out = queries("out", Role::saved);
    const OperandId d_out = queries("out.grad", Role::temporary);
    const OperandId d_queries = queries("query.out.grad", Role::temporary);
    const OperandId d_keys = keys("key_value.out.grad", Role::temporary);
    linear_.backward(projection(), out, gradient_out, d_out);
    core_.backward({queries("query.out", Role::saved), keys("key_value.out", Role::saved)}, out,
                   d_out, {d_queries, d_keys});
    encoded_backward(d_keys);
    linear_.backward(query(), saved_in, d_queries, gradient_in);
  }
  bool has_bias() const override { return cross_.output_bias; }

 private:
  LayerMatrix matrix(const char* name) const {
    return matrix_of(matrices_of(cross_, hidden()), name);
  }
  Sharding key_layout() const {
    Sharding layout = by_columns(cross_.head_dim);
    layout.column_groups = {cross_.key_columns(), cross_.key_columns(), 0};
    return layout;
  }
  Linear query() const { return linear_of(matrix("cross.query"), by_columns(cross_.head_dim)); }
  Linear key_value() const { return linear_of(matrix("cross.key_value"), key_layout()); }
  Linear projection() const {
    return linear_of(matrix("cross.projection"), by_rows(cross_.head_dim));
  }
  /// Adds to the gradient of the encoder's output; of a given one the layer drops it (layer.cpp).
  void encoded_backward(OperandId d_keys) {
    const bool adds = !begins_sum_ || inputs_.model.encoder->given();
    const OperandId own =
        adds ? block_.operand("cross.encoded.grad", Role::temporary, block_.at(encoded()).dtype,
                              block_.at(encoded()).uncut, block_.at(encoded()).sharding)
             : carried_rows("encoded.grad", source_);
    linear_.backward(key_value(), encoded(), d_keys, own);
    if (begins_sum_ || inputs_.model.encoder->given()) return;
    const OperandId sum = carried_rows("encoded.grad", source_);
    block_.add(OpKind::add, "cross.encoded.sum", {sum, own}, {sum});
  }
  OperandId encoded() { return carried_rows("encoded", source_); }
  /// [T, queries]: queries, or the output, which is as wide.
  OperandId queries(const char* name, Role role) {
    return features(std::string{"cross."} + name, role, cross_.query_columns(),
                    by_columns(cross_.head_dim));
  }
  /// [S, keys and values]
  OperandId keys(const char* name, Role role) {
    return block_.operand(std::string{"cross."} + name, role, storage_,
                          {1, inputs_.plan.batch.micro * source_, 2 * cross_.key_columns()},
                          of_tokens(key_layout()));
  }

  CrossAttentionPart cross_;
  bool begins_sum_;
  std::int64_t source_;  // tokens of a sequence
  AttentionPart heads_;
  AttentionCore core_;
};

}  // namespace

std::unique_ptr<MixerBuilder> cross_builder(BlockScope& scope, const CrossAttentionPart& cross,
                                            bool begins_sum) {
  return std::make_unique<CrossAttentionBuilder>(scope, cross, begins_sum);
}

}  // namespace orrery::models
