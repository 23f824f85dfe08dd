// What stands behind the last layer: final norm, BERT's transform and pooler, the vocabulary
// projection and the loss.

#include <algorithm>
#include <cmath>
#include <string>

#include "models/operations/ends.hpp"

namespace orrery::models {

namespace {

class HeadBuilder {
 public:
  HeadBuilder(const BlockInputs& inputs, Pass pass)
      : ends_{inputs},
        block_{pass == Pass::forward ? "head.forward" : "head.backward", pass},
        linear_{block_, ends_.inputs, ends_.shares} {}

  Block forward() {
    const Model& model = ends_.inputs.model;
    OperandId in = ends_.rows(block_, "x", Role::input);
    if (model.final_norm) {
      const OperandId out = ends_.rows(block_, "final_norm.out", Role::saved);
      ends_.norm(block_, "final_norm", in, out);
      in = out;
    }
    if (model.pooler) pool(in);
    if (picks()) in = pick(in);
    if (model.head_transform) in = transform(in);
    if (projects_embeddings(model)) in = narrowed(in);
    linear_.forward(vocabulary(), in, logits("logits", Role::temporary, ends_.storage));
    Operation& loss = block_.add(OpKind::cross_entropy, "loss",
                                 {logits("logits", Role::temporary, ends_.storage), labels()},
                                 {exponentials(), statistics()});
    loss.bytes = loss_bytes(ends_.inputs.software.kernels.loss_forward_bytes);
    return block_.finish();
  }

  Block backward() {
    const Model& model = ends_.inputs.model;
    const OperandId d_logits = logits("logits.grad", Role::temporary, ends_.storage);
    Operation& loss = block_.add(OpKind::cross_entropy_backward, "loss.backward",
                                 {exponentials(), labels(), statistics()}, {d_logits});
    loss.bytes = loss_bytes(ends_.inputs.software.kernels.loss_backward_bytes);
    const OperandId x = ends_.rows(block_, "x", Role::saved);
    const OperandId dx = ends_.rows(block_, "x.grad", Role::output);
    const OperandId in = model.final_norm ? ends_.rows(block_, "final_norm.out", Role::saved) : x;
    const OperandId d_in =
        model.final_norm ? ends_.rows(block_, "final_norm.out.grad", Role::temporary) : dx;
    const OperandId picked = picks() ? rows("picked", Role::saved) : in;
    const OperandId d_picked = picks() ? rows("picked.grad", Role::temporary) : d_in;
    if (model.head_transform) {
      transform_backward(picked, d_logits, d_picked);
    } else if (projects_embeddings(model)) {
      narrowed_backward(picked, d_logits, d_picked);
    } else {
      linear_.backward(vocabulary(), picked, d_logits, d_picked);
    }
    if (picks()) put_back(d_picked, d_in);
    if (model.pooler) pool_backward(d_in);
    if (model.final_norm) ends_.norm_backward(block_, "final_norm", d_in, x, dx);
    return block_.finish();
  }

 private:
  Linear vocabulary() const {
    return {.name = "head",
            .in = ends_.shares.embedding,
            .out = ends_.shares.vocab,
            .bias = ends_.inputs.model.head_bias,
            .rows = picks() ? predicted() : 0,
            .low_precision = false};
  }
  /// A dense layer that every rank of the tensor group has whole.
  Linear whole(std::string name, std::int64_t out, std::int64_t rows) const {
    return {.name = std::move(name),
            .in = ends_.shares.hidden,
            .out = out,
            .bias = true,
            .cut = LinearCut::whole,
            .rows = rows,
            .low_precision = false};
  }
  Linear dense() const {
    return whole("transform", ends_.shares.hidden, picks() ? predicted() : ends_.shares.rows);
  }
  Linear pooler() const { return whole("pooler", ends_.shares.hidden, ends_.shares.sequences); }
  /// Does the second sentence follow the first?
  Linear relation() const { return whole("relation", 2, ends_.shares.sequences); }

  OperandId logits(std::string_view name, Role role, DType dtype) {
    return block_.operand(name, role, dtype, {1, predicted(), ends_.shares.vocab});
  }
  /// exp(logit - largest logit of this rank's columns): not yet divided by their sum.
  OperandId exponentials() {
    return logits("softmax", Role::saved, state_dtype(ends_.inputs.plan.precision));
  }
  /// Of each row, over this rank's columns: the largest logit, the sum of exponentials, and the
  /// label's logit, minus infinity where the label is another rank's.
  OperandId statistics() {
    return block_.operand("loss.statistics", Role::saved, state_dtype(ends_.inputs.plan.precision),
                          {1, predicted(), 3});
  }
  OperandId labels() {
    return block_.operand("labels", Role::batch, DType::int64, {1, 1, predicted()});
  }
  /// [b, columns]: of the first token of each sequence.
  OperandId firsts(std::string_view name, Role role, std::int64_t columns) {
    return block_.operand(name, role, ends_.storage, {1, ends_.shares.sequences, columns});
  }
  /// Rows that go through the head.
  OperandId rows(std::string_view name, Role role) {
    if (!picks()) return ends_.rows(block_, name, role);
    return block_.operand(name, role, ends_.storage, {1, predicted(), ends_.shares.hidden});
  }

  /// Tokens that the model must predict: all, or the masked ones where the stack picks them out.
  std::int64_t predicted() const {
    const BlockInputs& inputs = ends_.inputs;
    const double share = inputs.software.kernels.predicted_share;
    const std::int64_t tokens = ends_.shares.tokens;
    if (inputs.model.causal || inputs.plan.sequence_parallel) return tokens;
    return std::clamp<std::int64_t>(std::llround(static_cast<double>(tokens) * share), 1, tokens);
  }
  bool picks() const { return predicted() < ends_.shares.tokens; }

  /// Bytes that the loss moves for every logit, as the stack's kernels do: its statistics are few
  /// beside them. In fp64 each number is twice as wide.
  Bytes loss_bytes(double per_logit) const {
    const double width = ends_.storage == DType::fp64 ? 2 : 1;
    const auto count = static_cast<double>(predicted() * ends_.shares.vocab);
    return nearest_count<Bytes>(count * per_logit * width);
  }

  /// Copies the rows to predict, which are all that it moves.
  OperandId pick(OperandId in) {
    const OperandId out = rows("picked", Role::saved);
    block_.add(OpKind::cast, "pick", {in}, {out}).bytes = block_.at(out).bytes() * 2;
    return out;
  }

  /// Zeros for all rows, then the picked ones over them.
  void put_back(OperandId picked, OperandId all) {
    block_.add(OpKind::cast, "put_back", {picked}, {all}).bytes =
        block_.at(all).bytes() + block_.at(picked).bytes() * 2;
  }

  OperandId transform(OperandId in) {
    const OperandId out = rows("transform.out", Role::saved);
    const OperandId active = rows("transform.active", Role::saved);
    const OperandId normed = rows("transform.normed", Role::saved);
    linear_.forward(dense(), in, out);
    block_.add(OpKind::activation, "transform.activation", {out}, {active}).activation =
        ends_.inputs.model.activation;
    ends_.norm(block_, "transform_norm", active, normed);
    return normed;
  }

  void transform_backward(OperandId in, OperandId d_logits, OperandId d_in) {
    const OperandId out = rows("transform.out", Role::saved);
    const OperandId active = rows("transform.active", Role::saved);
    const OperandId d_normed = rows("transform.normed.grad", Role::temporary);
    const OperandId d_active = rows("transform.active.grad", Role::temporary);
    const OperandId d_out = rows("transform.out.grad", Role::temporary);
    linear_.backward(vocabulary(), rows("transform.normed", Role::saved), d_logits, d_normed);
    ends_.norm_backward(block_, "transform_norm", d_normed, active, d_active);
    block_
        .add(OpKind::activation_backward, "transform.activation.backward", {d_active, out}, {d_out})
        .activation = ends_.inputs.model.activation;
    linear_.backward(dense(), in, d_out, d_in);
  }

  /// As wide as the vocabulary's rows. Only decoders have it, whose every row is predicted.
  Linear project_out() const {
    return ends_.projection("project_out", ends_.shares.hidden, ends_.shares.embedding);
  }

  OperandId narrowed(OperandId in) {
    const OperandId out = ends_.narrow_rows(block_, "narrow", Role::saved);
    linear_.forward(project_out(), in, out);
    return out;
  }

  void narrowed_backward(OperandId in, OperandId d_logits, OperandId d_in) {
    const OperandId d_out = ends_.narrow_rows(block_, "narrow.grad", Role::temporary);
    linear_.backward(vocabulary(), ends_.narrow_rows(block_, "narrow", Role::saved), d_logits,
                     d_out);
    linear_.backward(project_out(), in, d_out, d_in);
  }

  /// Copies the first rows, which are all that it moves.
  void take_firsts(OperandId from, OperandId to) {
    block_.add(OpKind::cast, "first", {from}, {to}).bytes = block_.at(to).bytes() * 2;
  }

  void pool(OperandId in) {
    const std::int64_t h = ends_.shares.hidden;
    const OperandId first = firsts("first", Role::saved, h);
    const OperandId out = firsts("pooler.out", Role::saved, h);
    const OperandId active = firsts("pooler.active", Role::saved, h);
    const OperandId answer = firsts("relation.out", Role::temporary, 2);
    take_firsts(in, first);
    linear_.forward(pooler(), first, out);
    block_.add(OpKind::activation, "pooler.activation", {out}, {active});  // a tanh, priced as gelu
    linear_.forward(relation(), active, answer);
    block_.add(OpKind::softmax, "relation.softmax", {answer},
               {firsts("relation.softmax", Role::saved, 2)});
  }

  /// Adds to the gradient of the first rows.
  void pool_backward(OperandId d_in) {
    const std::int64_t h = ends_.shares.hidden;
    const OperandId out = firsts("pooler.out", Role::saved, h);
    const OperandId d_answer = firsts("relation.out.grad", Role::temporary, 2);
    const OperandId d_active = firsts("pooler.active.grad", Role::temporary, h);
    const OperandId d_out = firsts("pooler.out.grad", Role::temporary, h);
    const OperandId d_first = firsts("first.grad", Role::temporary, h);
    const OperandId follows = block_.operand("sentence_labels", Role::batch, DType::int64,
                                             {1, 1, ends_.shares.sequences});
    block_.add(OpKind::softmax_backward, "relation.backward",
               {firsts("relation.softmax", Role::saved, 2), follows}, {d_answer});
    linear_.backward(relation(), firsts("pooler.active", Role::saved, h), d_answer, d_active);
    block_.add(OpKind::activation_backward, "pooler.activation.backward", {d_active, out}, {d_out});
    linear_.backward(pooler(), firsts("first", Role::saved, h), d_out, d_first);
    block_.add(OpKind::add, "first.add", {d_in, d_first}, {d_in}).bytes =
        block_.at(d_first).bytes() * 3;
  }

  Ends ends_;
  BlockBuilder block_;
  LinearBuilder linear_;
};

}  // namespace

BlockPair head_blocks(const BlockInputs& inputs) {
  return {HeadBuilder{inputs, Pass::forward}.forward(),
          HeadBuilder{inputs, Pass::backward}.backward()};
}

}  // namespace orrery::models
