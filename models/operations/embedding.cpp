// What precedes the first layer: embedding tables of tokens, learned positions and segments.

#include <string>

#include "models/operations/tables.hpp"
#include "models/operations/transformer.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

class EmbeddingBuilder : private BlockScope, private TransformerBuilder {
 public:
  EmbeddingBuilder(const BlockInputs& inputs, Pass pass, Role ids = Role::tokens)
      : BlockScope{inputs, pass == Pass::forward ? "embedding.forward" : "embedding.backward",
                   pass},
        TransformerBuilder{static_cast<BlockScope&>(*this)},
        ids_{ids} {}

  Block forward() {
    const Model& model = inputs_.model;
    const OperandId batch = token_ids();
    const OperandId words = parameter(embedding_table(model));
    const OperandId y = rows("y", Role::output);
    const OperandId out = model.norms.embedding ? rows("embedding.out", Role::saved) : y;
    const OperandId looked_up = adds_rows() ? rows("words", Role::temporary) : out;
    look_up(batch, words, looked_up);
    if (adapts()) adapter_forward(batch, looked_up);
    if (adds_rows()) add_rows(looked_up, out);
    if (model.norms.embedding) norm("embedding_norm", out, y);
    return block_.finish();
  }

  Block backward() {
    OperandId dy = rows("y.grad", Role::input);
    if (inputs_.model.norms.embedding) {
      const OperandId below = rows("embedding.out.grad", Role::temporary);
      norm_backward("embedding_norm", dy, rows("embedding.out", Role::saved), std::nullopt, below);
      dy = below;
    }
    const OperandId batch = token_ids();
    const OperandId words =
        block_.gradient(embedding_table(inputs_.model), gradient_, context_axes);
    const OperandId fresh = separate() ? fresh_table(words) : words;
    const OperandId found = gradient_of_narrow(dy);
    Operation& op =
        block_.add(OpKind::embedding_backward, "embedding.backward", {batch, found}, {fresh});
    block_.need(op, found, of_tokens({}));
    if (multiplier() != 1) op.mutable_multiplier() = multiplier();
    // Only the rows of tokens that occur are read and written; a separate accumulation reads the
    // whole dense gradient.
    op.bytes = all_rows(block_.at(found).dtype) + all_rows(block_.at(fresh).dtype) * 2;
    if (adds_rows()) gradients_of_rows(dy);
    if (adapts()) adapter_backward(batch, found);
    if (separate()) {
      block_.add(OpKind::accumulate, "embedding.accumulate", {fresh, words}, {words});
    }
    return block_.finish();
  }

 private:
  bool separate() const { return inputs_.software.accumulation == Accumulation::separate; }
  /// Are position or segment embeddings added to the tokens' embeddings?
  bool adds_rows() const {
    return position_rows(inputs_.model) > 0 || inputs_.model.embedding.token_types > 0;
  }
  double multiplier() const { return inputs_.model.embedding.multiplier; }
  OperandId token_ids() {
    return block_.operand("tokens", ids_, DType::int64, {1, 1, tokens()},
                          of_tokens({}, Dimension::columns));
  }
  OperandId fresh_table(OperandId gradient) {
    return block_.operand("embedding.weight.fresh", Role::temporary, storage_,
                          block_.at(gradient).uncut, block_.at(gradient).sharding);
  }
  /// Bytes of one table row for every token of the rank.
  Bytes all_rows(DType dtype) const {
    const std::int64_t width = embedding_width(inputs_.model);
    const std::int64_t own = tokens() / inputs_.plan.context;
    return Bytes{multiplied<Bytes>(own, width, bits(dtype)).count() / 8};
  }
  ModelTensor table(std::string name, std::int64_t count) const {
    return {.name = std::move(name),
            .uncut = {1, count, inputs_.model.hidden},
            .initial = {.deviation = inputs_.model.initial_deviation}};
  }
  ModelTensor positions() const { return table("positions.weight", position_rows(inputs_.model)); }
  ModelTensor token_types() const {
    return table("token_types.weight", inputs_.model.embedding.token_types);
  }
  /// Bytes of the position rows that a rank reads, each once for all its sequences.
  Bytes bytes_of_positions(OperandId of, DType dtype) const {
    const Shape& shape = block_.at(of).shape;
    return Bytes{shape[1] / inputs_.plan.batch.micro * shape[2] * bits(dtype) / 8};
  }
  Linear project_in() const {
    return {.name = "project_in",
            .in = embedding_width(inputs_.model),
            .out = inputs_.model.hidden,
            .low_precision = false};
  }

  // An adapter of the table: y += scale * A[token] B, with A [V, rank], which begins as zeros, and
  // B [rank, h]. Source  class Embedding of peft/tuners/lora/layer.py, Hugging Face's PEFT 0.14
  bool adapts() const {
    return trains_adapters(inputs_.plan) &&
           inputs_.plan.adapters.targets.has(LoraTarget::embedding);
  }
  ModelTensor adapter_table() const {
    ModelTensor table = embedding_table(inputs_.model);
    table.name = "embedding.lora_a.weight";
    table.uncut[2] = inputs_.plan.adapters.rank;
    table.initial = {Initial::Kind::zeros};
    table.adapter = true;
    return table;
  }
  Linear adapter_out() const {
    return {.name = "embedding.lora_b",
            .in = inputs_.plan.adapters.rank,
            .out = inputs_.model.hidden,
            .low_precision = false,
            .adapter = true};
  }
  OperandId adapter_rows(std::string_view name, Role role) {
    return features(name, role, inputs_.plan.adapters.rank, rows_layout(inputs_.plan));
  }
  /// Rows of A for every token, read and written once, or read and written twice for its gradient.
  Bytes adapter_bytes(DType dtype, std::int64_t times) const {
    return Bytes{multiplied<Bytes>(tokens() / inputs_.plan.context * times,
                                   inputs_.plan.adapters.rank, bits(dtype))
                     .count() /
                 8};
  }

  void adapter_forward(OperandId batch, OperandId out) {
    const std::size_t first = block_.size();
    const OperandId table = parameter(adapter_table());
    const OperandId middle = adapter_rows("embedding.lora_middle", Role::saved);
    Operation& op = block_.add(OpKind::embedding, "embedding.lora_a", {batch, table}, {middle});
    Sharding made = of_tokens({});
    made.partial = MeshAxis::tensor;
    block_.make(op, middle, made);
    op.bytes = adapter_bytes(storage_, 2) + block_.at(batch).bytes();
    const OperandId wide = rows("embedding.lora_out", Role::temporary);
    linear_.forward(adapter_out(), middle, wide);
    block_.add(OpKind::cast, "embedding.lora_scale", {wide}, {wide});
    block_.add(OpKind::add, "embedding.lora_add", {out, wide}, {out});
    for (Operation& each : block_.since(first)) each.module.adapter = true;
  }

  void adapter_backward(OperandId batch, OperandId dy) {
    const std::size_t first = block_.size();
    const OperandId scaled = rows("embedding.lora_out.grad", Role::temporary);
    const OperandId d_middle = adapter_rows("embedding.lora_middle.grad", Role::temporary);
    const OperandId sums = block_.gradient(adapter_table(), gradient_, context_axes);
    block_.add(OpKind::cast, "embedding.lora_scale.backward", {dy}, {scaled});
    linear_.backward(adapter_out(), adapter_rows("embedding.lora_middle", Role::saved), scaled,
                     d_middle);
    Operation& op = block_.add(OpKind::embedding_backward, "embedding.lora_a.backward",
                               {batch, d_middle}, {sums});
    block_.need(op, d_middle, of_tokens({}));
    op.bytes = adapter_bytes(storage_, 1) + adapter_bytes(gradient_, 2);
    for (Operation& each : block_.since(first)) each.module.adapter = true;
  }

  /// Looks up the tokens' rows and projects them to the layers' width. A rank has the rows of its
  /// vocabulary shard and zeros for the others: a partial sum over the tensor ranks.
  void look_up(OperandId batch, OperandId words, OperandId out) {
    const bool projects = projects_embeddings(inputs_.model);
    const OperandId found = projects ? narrow_rows("narrow", Role::saved) : out;
    Operation& op = block_.add(OpKind::embedding, "embedding", {batch, words}, {found});
    Sharding made = of_tokens({});
    made.partial = MeshAxis::tensor;
    block_.make(op, found, made);
    if (multiplier() != 1) op.mutable_multiplier() = multiplier();
    // One row of the table is read for each row written.
    op.bytes = all_rows(storage_) * 2 + block_.at(batch).bytes();
    if (projects) linear_.forward(project_in(), found, out);
  }

  /// Gradient of the looked-up rows, before their projection to the layers' width.
  OperandId gradient_of_narrow(OperandId dy) {
    if (!projects_embeddings(inputs_.model)) return dy;
    const OperandId narrow = narrow_rows("narrow.grad", Role::temporary);
    linear_.backward(project_in(), narrow_rows("narrow", Role::saved), dy, narrow);
    return narrow;
  }

  /// Adds positions and segments to a rank's rows, after the sum over the vocabulary's shards.
  void add_rows(OperandId words, OperandId out) {
    Operation& op = block_.add(OpKind::add, "positions", {words}, {out});
    if (position_rows(inputs_.model) > 0) {
      op.mutable_by_position() = true;
      op.reads.push_back(parameter(positions()));
      op.bytes += bytes_of_positions(out, storage_);
    }
    if (inputs_.model.embedding.token_types > 0) block_.read(op, parameter(token_types()));
  }

  void gradients_of_rows(OperandId dy) {
    Operation& op = block_.add(OpKind::add_backward, "positions.backward", {dy}, {});
    op.dtype = storage_;
    if (position_rows(inputs_.model) > 0) {
      op.mutable_by_position() = true;
      op.writes.push_back(gradient(positions(), dy));
      op.bytes += bytes_of_positions(dy, gradient_) * 2;
    }
    if (inputs_.model.embedding.token_types > 0) block_.write(op, gradient(token_types(), dy));
  }

  Role ids_;
};

}  // namespace

BlockPair embedding_blocks(const BlockInputs& inputs) {
  BlockPair pair{EmbeddingBuilder{inputs, Pass::forward}.forward(),
                 EmbeddingBuilder{inputs, Pass::backward}.backward()};
  if (inputs.model.generator_hidden > 0) {
    ensure(!inputs.model.front, "a generator's model has no encoder in front");
    return with_generator(inputs, pair);
  }
  if (inputs.model.encoder) return with_source(inputs, pair);
  return inputs.model.front ? with_front(inputs, pair) : std::move(pair);
}

BlockPair source_embedding_blocks(const BlockInputs& inputs) {
  return {EmbeddingBuilder{inputs, Pass::forward, Role::source}.forward(),
          EmbeddingBuilder{inputs, Pass::backward, Role::source}.backward()};
}

}  // namespace orrery::models
