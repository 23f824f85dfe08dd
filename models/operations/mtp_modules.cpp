// Multi-token prediction (MTP): module k reads the output of module k - 1 (the first: of the last
// layer) and the embedding of the k-th next token, and its layer's output goes through the head.
// Embedding and head are the model's own; on the last pipeline stage the embedding table is a copy
// of the first stage's, and their gradients are summed as those of a tied head are.
// The joining matrix is whole on every tensor rank, which applies it to its own rows under sequence
// parallelism, and to all rows without.
// Source  DeepSeek-AI 2024, "DeepSeek-V3", arXiv 2412.19437, section 2.2, equations 21 to 23

#include <algorithm>
#include <string>
#include <vector>

#include "models/operations/nested.hpp"
#include "models/operations/tables.hpp"
#include "models/operations/transformer.hpp"

namespace orrery::models {

namespace {

/// Joins a module's two inputs: y = M [norm(x); norm(embedded)].
class MtpJoinBuilder : private BlockScope, private TransformerBuilder {
 public:
  MtpJoinBuilder(const BlockInputs& inputs, Pass pass)
      : BlockScope{inputs, pass == Pass::forward ? "join.forward" : "join.backward", pass},
        TransformerBuilder{static_cast<BlockScope&>(*this)} {}

  Block forward() {
    const OperandId below = rows("x", Role::input), next = rows("embedded", Role::input);
    const OperandId normed = rows("x_norm.out", Role::temporary);
    const OperandId normed_next = rows("embedded_norm.out", Role::temporary);
    norm("x_norm", below, normed);
    norm("embedded_norm", next, normed_next);
    const OperandId both = wide("both", Role::saved);
    block_.add(OpKind::cast, "concatenate", {normed, normed_next}, {both});
    linear_.forward(projection(), both, rows("y", Role::output));
    return block_.finish();
  }

  Block backward() {
    const OperandId dy = rows("y.grad", Role::input);
    const OperandId d_both = wide("both.grad", Role::temporary);
    linear_.backward(projection(), wide("both", Role::saved), dy, d_both);
    const OperandId d_normed = rows("x_norm.out.grad", Role::temporary);
    const OperandId d_next = rows("embedded_norm.out.grad", Role::temporary);
    block_.add(OpKind::cast, "split", {d_both}, {d_normed, d_next});
    norm_backward("x_norm", d_normed, rows("x", Role::saved), std::nullopt,
                  rows("x.grad", Role::output));
    norm_backward("embedded_norm", d_next, rows("embedded", Role::saved), std::nullopt,
                  rows("embedded.grad", Role::output));
    return block_.finish();
  }

 private:
  OperandId wide(std::string_view name, Role role) {
    return block_.operand(name, role, storage_, {1, tokens(), 2 * inputs_.model.hidden},
                          rows_layout(inputs_.plan));
  }
  Linear projection() const {
    return {.name = "join", .in = 2 * inputs_.model.hidden, .out = inputs_.model.hidden};
  }
};

/// The model whose embedding and head the modules use.
Model without_prediction(Model model) {
  model.prediction_layers = 0;
  model.front.reset();
  return model;
}

/// One module's blocks, and which of their operands are operands of the head's block.
class MtpModule {
 public:
  MtpModule(const BlockInputs& inputs, std::int64_t number)
      : model_{without_prediction(inputs.model)},
        inputs_{inputs.of(model_)},
        prefix_{prefix_of(number)},
        weights_{prefix_of(model_.prediction_shared ? 1 : number)},
        below_{number == 1 ? "x" : "predict" + std::to_string(number - 1) + ".y"},
        embedding_{embedding_blocks(inputs_)},
        head_{head_blocks(inputs_)} {
    for (const Layer& each : prediction_module(model_)) {
      layers_.push_back(layer_blocks(inputs_, each));
    }
  }

  void add_forward(Block& into) const {
    nest(into, embedding_.forward, prefix_, with_tables({{"y", own("embedded")}}));
    const Block join = MtpJoinBuilder{inputs_, Pass::forward}.forward();
    nest_own(into, join, "", {{"x", below_}, {"embedded", own("embedded")}, {"y", own("joined")}});
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      nest_own(into, layers_[i].forward, of_layer(i), {{"x", before(i)}, {"y", before(i + 1)}});
    }
    nest_own(into, head_.forward, "head.", with_tables({{"x", own("y")}}));
  }

  /// `later`: a module follows, whose gradient of this one's output is added.
  void add_backward(Block& into, bool later) const {
    const std::string dy = own("y.grad");
    nest_own(into, head_.backward, "head.", with_tables({{"x", own("y")}, {"x.grad", dy}}));
    if (later) add_to(into, dy);
    for (std::size_t i = layers_.size(); i-- > 0;) {
      nest_own(
          into, layers_[i].backward, of_layer(i),
          {{"x", before(i)}, {"y.grad", before(i + 1) + ".grad"}, {"x.grad", before(i) + ".grad"}});
    }
    const Block join = MtpJoinBuilder{inputs_, Pass::backward}.backward();
    nest_own(into, join, "",
             {{"x", below_},
              {"embedded", own("embedded")},
              {"y.grad", own("joined.grad")},
              {"x.grad", "below.grad"},
              {"embedded.grad", own("embedded.grad")}});
    nest(into, embedding_.backward, prefix_, with_tables({{"y.grad", own("embedded.grad")}}));
  }

  /// Adds what the next module's backward left in "below.grad" to `gradient`, which this module's
  /// head, or the model's, has written.
  static void add_to(Block& into, const std::string& gradient) {
    const OperandId sum = *into.find(gradient), more = *into.find("below.grad");
    Operation op;
    op.kind = OpKind::add;
    op.name = "further." + gradient;
    op.pass = Pass::backward;
    op.reads = {sum, more};
    op.writes = {sum};
    op.dtype = into.operands[sum].dtype;
    op.bytes = into.operands[sum].bytes() * 3;
    into.operations.push_back(std::move(op));
  }

 private:
  std::string own(const std::string& name) const { return prefix_ + name; }

  static std::string prefix_of(std::int64_t number) {
    return "predict" + std::to_string(number) + ".";
  }

  /// The first layer's operands stand under the module's prefix, as where it is the only one.
  static std::string of_layer(std::size_t i) {
    return i == 0 ? std::string{} : "layer" + std::to_string(i + 1) + ".";
  }

  /// Nests a part of the module, whose weights are the first module's where all are the same.
  void nest_own(Block& into, const Block& part, const std::string& name,
                std::vector<Joined> joined) const {
    if (weights_ != prefix_) {
      for (const Operand& each : part.operands) {
        const bool weight = each.role == Role::parameter || each.role == Role::gradient;
        const bool known = std::ranges::find(joined, each.name, &Joined::part) != joined.end();
        if (weight && !known)
          joined.push_back({each.name, weights_ + name + each.name, weights_ + name});
      }
    }
    nest(into, part, prefix_ + name, joined);
  }
  /// What layer i reads, and the one before it wrote.
  std::string before(std::size_t i) const {
    if (i == 0) return own("joined");
    return i == layers_.size() ? own("y") : own("between" + std::to_string(i));
  }

  /// Identifies the module's tables with the model's (or the copy on the last stage) and the
  /// head's.
  std::vector<Joined> with_tables(std::vector<Joined> all) const {
    const std::string table = model_.embedding.tied ? "head.weight" : "tokens.weight";
    for (const std::string suffix : {"", ".grad"}) {
      all.push_back({"embedding.weight" + suffix, table + suffix});
      all.push_back({"head.weight" + suffix, "head.weight" + suffix});
    }
    return all;
  }

  Model model_;
  BlockInputs inputs_;
  std::string prefix_, weights_, below_;
  BlockPair embedding_, head_;
  std::vector<BlockPair> layers_;
};

}  // namespace

void add_mtp_modules(const BlockInputs& inputs, Block& forward, Block& backward) {
  const std::int64_t modules = inputs.model.prediction_layers;
  for (std::int64_t each = 1; each <= modules; ++each) MtpModule{inputs, each}.add_forward(forward);
  for (std::int64_t each = modules; each >= 1; --each) {
    MtpModule{inputs, each}.add_backward(backward, each < modules);
  }
  if (modules == 0) return;
  MtpModule::add_to(backward, "x.grad");
  link(forward);
  link(backward);
}

}  // namespace orrery::models
