// What follows the last layer: final norm, BERT's transform, the vocabulary projection and the
// loss.

#include <algorithm>
#include <cmath>
#include <string>

#include "models/operations/pooler.hpp"
#include "models/operations/tables.hpp"
#include "models/operations/transformer.hpp"
#include "models/plan/precision_formats.hpp"

namespace orrery::models {

namespace {

class HeadBuilder : private BlockScope, private PoolerBuilder {
 public:
  HeadBuilder(const BlockInputs& inputs, Pass pass)
      : BlockScope{inputs, pass == Pass::forward ? "head.forward" : "head.backward", pass},
        PoolerBuilder{static_cast<BlockScope&>(*this)} {}

  Block forward() {
    const Model& model = inputs_.model;
    OperandId in = rows("x", Role::input);
    if (model.norms.final) {
      const OperandId out = rows("final_norm.out", Role::saved);
      norm("final_norm", in, out);
      in = out;
    }
    if (model.head.pooler) pool(in);
    if (picks()) in = pick(in);
    if (model.head.transform) in = transform(in);
    if (projects_embeddings(model)) in = narrowed(in);
    const OperandId out = logits("logits", Role::temporary, product_);
    const std::size_t first = block_.size();
    linear_.forward(vocabulary(), in, out);
    Operation& loss =
        block_.add(OpKind::cross_entropy, "loss", {out, labels()}, {exponentials(), statistics()});
    // A loss over shards of the vocabulary needs the statistics of every shard.
    block_.make(loss, statistics(), of_tokens({MeshAxis::tensor, Dimension::matrices}));
    loss.mutable_vocabulary() =
        model.head.task_outputs > 0 ? model.head.task_outputs : model.embedding.vocab;
    if (copies() > 0) block_.write(loss, copied_logits());
    loss.bytes = loss_bytes(inputs_.software.kernels.loss_forward_bytes);
    if (fuses()) {
      gradient_of_loss(in);
      by_pieces(first, in);
    }
    return block_.finish();
  }

  Block backward() {
    const Model& model = inputs_.model;
    if (fuses()) return backward_of_norm();
    const OperandId d_logits = logits("logits.grad", Role::temporary, product_);
    Operation& loss = block_.add(OpKind::cross_entropy_backward, "loss.backward",
                                 {exponentials(), labels(), statistics()}, {d_logits});
    loss.mutable_vocabulary() =
        model.head.task_outputs > 0 ? model.head.task_outputs : model.embedding.vocab;
    loss.bytes = loss_bytes(inputs_.software.kernels.loss_backward_bytes);
    const OperandId x = rows("x", Role::saved);
    const OperandId dx = rows("x.grad", Role::output);
    const OperandId in = model.norms.final ? rows("final_norm.out", Role::saved) : x;
    const OperandId d_in = model.norms.final ? rows("final_norm.out.grad", Role::temporary) : dx;
    const OperandId picked = picks() ? predicted_rows("picked", Role::saved) : in;
    const OperandId d_picked = picks() ? predicted_rows("picked.grad", Role::temporary) : d_in;
    if (model.head.transform) {
      transform_backward(picked, d_logits, d_picked);
    } else if (projects_embeddings(model)) {
      narrowed_backward(picked, d_logits, d_picked);
    } else {
      linear_.backward(vocabulary(), picked, d_logits, d_picked);
    }
    if (picks()) put_back(d_picked, d_in);
    if (model.head.pooler) pool_backward(d_in);
    if (model.norms.final) norm_backward("final_norm", d_in, x, std::nullopt, dx);
    return block_.finish();
  }

 private:
  /// The vocabulary projection, cut as the embedding table is, with which it may be tied.
  Linear vocabulary() const {
    const Model& model = inputs_.model;
    if (model.head.task_outputs > 0) return whole("head", model.head.task_outputs);
    return {.name = "head",
            .in = embedding_width(model),
            .out = model.embedding.vocab,
            .bias = model.head.bias,
            .sharding = by_columns(vocabulary_unit),
            .low_precision = false,
            .stored_transposed = true,
            .tied_to = model.embedding.tied ? embedding_table(model).name : "",
            .target = LoraTarget::head};
  }
  Linear dense() const { return whole("transform", inputs_.model.hidden); }
  OperandId logits(std::string_view name, Role role, DType dtype) {
    const std::int64_t answers = inputs_.model.head.task_outputs;
    if (answers > 0)
      return block_.operand(name, role, dtype, {1, predicted(), answers}, of_tokens({}));
    return block_.operand(name, role, dtype, {1, piece(), inputs_.model.embedding.vocab},
                          of_tokens(by_columns(vocabulary_unit)));
  }
  /// exp(logit - largest logit of this rank's columns), not yet divided by their sum.
  OperandId exponentials() {
    const Role role = fuses() ? Role::temporary : Role::saved;
    return logits("softmax", role, state_dtype(inputs_.plan.formats.precision));
  }
  /// Copies of the logits in fp32 that the stack's loss makes, as its kernels each write their own.
  /// Autograd's backward makes as many, of gradients.
  std::int64_t copies() const {
    const bool whole = inputs_.model.causal && inputs_.model.head.task_outputs == 0 && !fuses();
    return whole ? std::llround(inputs_.software.memory.loss_copies) : 0;
  }
  OperandId copied_logits() {
    return block_.operand(logits_copies, Role::temporary,
                          state_dtype(inputs_.plan.formats.precision),
                          {copies(), predicted(), inputs_.model.embedding.vocab},
                          of_tokens(by_columns(vocabulary_unit)));
  }
  /// For each row and each shard of the columns: the largest logit, the sum of exponentials, and
  /// the label's logit (minus infinity where the label is in another rank's shard).
  OperandId statistics() {
    return block_.operand("loss.statistics", Role::saved,
                          state_dtype(inputs_.plan.formats.precision),
                          {block_.mesh().degree(MeshAxis::tensor), predicted(), 3}, of_tokens({}));
  }
  OperandId labels() {
    const bool fills_in = !inputs_.model.causal && inputs_.model.head.task_outputs == 0;
    return block_.operand(fills_in ? masked_labels : "labels", Role::labels, DType::int64,
                          {1, 1, predicted()}, of_tokens({}, Dimension::columns));
  }
  /// The rows that go through the head.
  OperandId predicted_rows(std::string_view name, Role role) {
    if (!picks()) return rows(name, role);
    return block_.operand(name, role, storage_, {1, predicted(), inputs_.model.hidden});
  }

  /// The same, as wide as a row of the embedding table.
  OperandId predicted_narrow_rows(std::string_view name, Role role) {
    if (!picks()) return narrow_rows(name, role);
    return block_.operand(name, role, storage_, {1, predicted(), embedding_width(inputs_.model)});
  }

  /// Tokens that the model predicts: all, or only the masked ones if the stack selects them.
  std::int64_t predicted() const {
    const double share = inputs_.software.kernels.predicted_share;
    const std::int64_t all = tokens();
    const bool every = inputs_.model.causal || inputs_.model.head.task_outputs > 0;
    if (every || inputs_.plan.sequence_parallel) return all;
    return std::clamp<std::int64_t>(std::llround(static_cast<double>(all) * share), 1, all);
  }
  bool picks() const { return predicted() < tokens(); }

  /// Memory traffic of the loss: the stack's bytes per logit; the statistics are negligible. In
  /// fp64 each number is twice as wide.
  Bytes loss_bytes(double per_logit) {
    const double width = product_ == DType::fp64 ? 2 : 1;
    const OperandId one = logits("logits", Role::temporary, product_);
    const auto count = static_cast<double>(block_.at(one).elements() / piece() * predicted());
    return nearest_count<Bytes>(count * per_logit * width);
  }

  bool fuses() const { return inputs_.plan.kernels.fused_cross_entropy; }

  /// Rows of logits that exist at a time: all, or with a fused loss as many as take no more memory
  /// than the rows that the head reads.
  /// Source  Liger Kernel, fused_linear_cross_entropy (arXiv 2410.10989): T over ceil(V / h), as a
  ///         power of two
  std::int64_t piece() const {
    if (!fuses()) return predicted();
    const Model& model = inputs_.model;
    const std::int64_t ratio = (model.embedding.vocab + model.hidden - 1) / model.hidden;
    std::int64_t rows = 1;
    while (rows * ratio < predicted()) rows *= 2;
    return std::min(rows, predicted());
  }

  /// A fused loss computes the head's gradients in forward, piece by piece; backward reads the
  /// saved input gradient.
  void gradient_of_loss(OperandId in) {
    const OperandId d_logits = logits("logits.grad", Role::temporary, product_);
    Operation& loss = block_.add(OpKind::cross_entropy_backward, "loss.backward",
                                 {exponentials(), labels(), statistics()}, {d_logits});
    loss.mutable_vocabulary() = inputs_.model.embedding.vocab;
    loss.bytes = loss_bytes(inputs_.software.kernels.loss_backward_bytes);
    linear_.backward(vocabulary(), in, d_logits, rows("head.in.grad", Role::saved));
  }

  /// Counts the traffic of the pieces: each reads the whole weight and adds to its gradient.
  void by_pieces(std::size_t first, OperandId in) {
    const std::int64_t pieces = (predicted() + piece() - 1) / piece();
    const auto times = [&](OperandId id) {
      const bool small =
          block_.at(id).shape[1] < predicted() && block_.at(id).role == Role::temporary;
      const bool weight =
          block_.at(id).role == Role::parameter || block_.at(id).role == Role::gradient;
      return small || weight ? pieces : 1;
    };
    for (Operation& op : block_.since(first)) {
      op.mutable_pieces() = pieces;
      if (op.kind != OpKind::gemm) continue;
      op.bytes = Bytes{};
      for (const OperandId id : op.reads) op.bytes += block_.at(id).bytes() * times(id);
      for (const OperandId id : op.writes) op.bytes += block_.at(id).bytes() * times(id);
      if (op.gemm().accumulate) op.bytes += block_.at(op.writes.front()).bytes() * pieces;
      if (op.gemm().transpose_b) op.mutable_gemm().m = block_.shape(in, {})[1];
      op.flops = multiplied<Flops>(2, op.gemm().m, op.gemm().n, op.gemm().k);
    }
  }

  Block backward_of_norm() {
    const OperandId d_in = rows("head.in.grad", Role::saved);
    const OperandId dx = rows("x.grad", Role::output);
    if (inputs_.model.norms.final) {
      norm_backward("final_norm", d_in, rows("x", Role::saved), std::nullopt, dx);
    } else {
      block_.add(OpKind::cast, "head.in.grad", {d_in}, {dx});
    }
    return block_.finish();
  }

  /// Copies the rows to predict; the traffic is that of these rows alone.
  OperandId pick(OperandId in) {
    const OperandId out = predicted_rows("picked", Role::saved);
    block_.add(OpKind::cast, "pick", {in}, {out}).bytes = block_.at(out).bytes() * 2;
    return out;
  }

  /// Writes zeros to all rows, then the picked rows over them.
  void put_back(OperandId picked, OperandId all) {
    block_.add(OpKind::cast, "put_back", {picked}, {all}).bytes =
        block_.at(all).bytes() + block_.at(picked).bytes() * 2;
  }

  OperandId transform(OperandId in) {
    const OperandId out = predicted_rows("transform.out", Role::saved);
    const OperandId active = predicted_rows("transform.active", Role::saved);
    const OperandId normed = predicted_rows("transform.normed", Role::saved);
    linear_.forward(dense(), in, out);
    block_.add(OpKind::activation, "transform.activation", {out}, {active}).mutable_activation() =
        inputs_.model.head.activation;
    norm("transform_norm", active, normed);
    return normed;
  }

  void transform_backward(OperandId in, OperandId d_logits, OperandId d_in) {
    const OperandId out = predicted_rows("transform.out", Role::saved);
    const OperandId active = predicted_rows("transform.active", Role::saved);
    const OperandId d_normed = predicted_rows("transform.normed.grad", Role::temporary);
    const OperandId d_active = predicted_rows("transform.active.grad", Role::temporary);
    const OperandId d_out = predicted_rows("transform.out.grad", Role::temporary);
    linear_.backward(vocabulary(), predicted_rows("transform.normed", Role::saved), d_logits,
                     d_normed);
    norm_backward("transform_norm", d_normed, active, std::nullopt, d_active);
    block_
        .add(OpKind::activation_backward, "transform.activation.backward", {d_active, out}, {d_out})
        .mutable_activation() = inputs_.model.head.activation;
    linear_.backward(dense(), in, d_out, d_in);
  }

  /// Projection to the width of the embedding table.
  Linear project_out() const {
    return {.name = "project_out",
            .in = inputs_.model.hidden,
            .out = embedding_width(inputs_.model),
            .low_precision = false};
  }

  OperandId narrowed(OperandId in) {
    const OperandId out = predicted_narrow_rows("narrow", Role::saved);
    linear_.forward(project_out(), in, out);
    return out;
  }

  void narrowed_backward(OperandId in, OperandId d_logits, OperandId d_in) {
    const OperandId d_out = predicted_narrow_rows("narrow.grad", Role::temporary);
    linear_.backward(vocabulary(), predicted_narrow_rows("narrow", Role::saved), d_logits, d_out);
    linear_.backward(project_out(), in, d_out, d_in);
  }

  const DType product_ = storage_dtype(inputs_.plan.formats.precision);  // what a GEMM writes
};

}  // namespace

BlockPair head_blocks(const BlockInputs& inputs) {
  Block forward = HeadBuilder{inputs, Pass::forward}.forward();
  Block backward = HeadBuilder{inputs, Pass::backward}.backward();
  add_mtp_modules(inputs, forward, backward);
  return {std::move(forward), std::move(backward)};
}

}  // namespace orrery::models
