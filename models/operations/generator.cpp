// ELECTRA's generator: a narrower BERT on the masked tokens. It uses the embedding tables of the
// model that it trains with, so a matrix leads from the tables' width to its own, and its head
// projects back to theirs. It has a loss of its own; no gradient flows from the model into it.
// Source  Clark et al. 2020, "ELECTRA", arXiv 2003.10555, section 3.2 and table 6

#include <string>

#include "models/operations/nested.hpp"
#include "models/operations/transformer.hpp"

namespace orrery::models {

namespace {

/// [T, h] x [h, g]: projects embeddings from the model's width h to the generator's g.
class NarrowBuilder : private BlockScope, private TransformerBuilder {
 public:
  NarrowBuilder(const BlockInputs& generator, Pass pass)
      : BlockScope{generator, "narrow", pass},
        TransformerBuilder{static_cast<BlockScope&>(*this)} {}

  Block forward() {
    linear_.forward(matrix(), narrow_rows("x", Role::input), rows("y", Role::output));
    return block_.finish();
  }
  Block backward() {
    linear_.backward(matrix(), narrow_rows("x", Role::saved), rows("y.grad", Role::input),
                     narrow_rows("x.grad", Role::output));
    return block_.finish();
  }

 private:
  Linear matrix() const {
    return {.name = "project_in",
            .in = embedding_width(inputs_.model),
            .out = inputs_.model.hidden,
            .bias = true,
            .low_precision = false};
  }
};

/// Identifies the generator's tables and their gradients with the model's.
std::vector<Joined> with_tables(const Block& embedding, std::vector<Joined> all) {
  for (const Operand& each : embedding.operands) {
    const bool weight = each.role == Role::parameter || each.role == Role::gradient;
    if (weight) all.push_back({each.name, each.name});
  }
  for (const std::string suffix : {"", ".grad"}) {
    all.push_back({"head.weight" + suffix, "embedding.weight" + suffix});
  }
  return all;
}

std::string of_layer(std::int64_t layer, const char* what) {
  return "generator." + std::to_string(layer) + "." + what;
}

/// The generator's parts around an embedding, forward before it and backward after it.
class Generating {
 public:
  Generating(const BlockInputs& inputs, const BlockPair& embedding)
      : model_{generator_model(inputs.model)},
        inputs_{inputs.of(model_)},
        embedding_{embedding},
        layer_{layer_blocks(inputs_, model_.layers[0])},
        head_{head_blocks(inputs_)} {}

  Block forward() const {
    const Block& tables = embedding_.forward;
    Block all;
    all.name = tables.name;
    nest(all, tables, "masked.", with_tables(tables, {{"y", "masked.y"}}));
    nest(all, NarrowBuilder{inputs_, Pass::forward}.forward(), "generator.",
         {{"x", "masked.y"}, {"y", of_layer(0, "x")}});
    for (std::int64_t i = 0; i < model_.layers.size(); ++i) {
      nest(all, layer_.forward, of_layer(i, ""), {{"y", of_layer(i + 1, "x")}});
    }
    nest(all, head_.forward, "generator.head.",
         with_tables(tables, {{"x", of_layer(model_.layers.size(), "x")}}));
    nest(all, tables, "", {});
    link(all);
    return all;
  }

  Block backward() const {
    const Block& tables = embedding_.backward;
    Block all;
    all.name = tables.name;
    nest(all, tables, "", {});
    nest(all, head_.backward, "generator.head.",
         with_tables(tables, {{"x", of_layer(model_.layers.size(), "x")},
                              {"x.grad", of_layer(model_.layers.size(), "x.grad")}}));
    for (std::int64_t i = model_.layers.size() - 1; i >= 0; --i) {
      nest(all, layer_.backward, of_layer(i, ""), {{"y.grad", of_layer(i + 1, "x.grad")}});
    }
    nest(all, NarrowBuilder{inputs_, Pass::backward}.backward(), "generator.",
         {{"x", "masked.y"}, {"y.grad", of_layer(0, "x.grad")}, {"x.grad", "masked.y.grad"}});
    nest(all, tables, "masked.", with_tables(tables, {{"y.grad", "masked.y.grad"}}));
    link(all);
    return all;
  }

 private:
  Model model_;
  BlockInputs inputs_;
  const BlockPair& embedding_;
  BlockPair layer_, head_;
};

}  // namespace

BlockPair with_generator(const BlockInputs& inputs, const BlockPair& embedding) {
  const Generating generating{inputs, embedding};
  return {generating.forward(), generating.backward()};
}

}  // namespace orrery::models
