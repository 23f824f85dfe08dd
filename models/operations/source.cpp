// The embedding of a model with an encoder before its decoder. The encoder's rows go on to the
// first layer; the decoder's are kept under the name `target` for the first of its own. Both look
// up one table unless the encoder has one of its own, and have positions and norms of their own. Of
// sound, with c numbers a frame, 2 S frames and S steps of width h:
//   frames  [2 S, 3 c] x [3 c, h], gelu, [S, 3 h] x [3 h, h], gelu, positions
// each convolution as the GEMM that it is, of which three neighbours are the columns.
// Rows that are given go to `encoded` as they are read.
// Source  Vaswani et al. 2017, arXiv 1706.03762, figure 1; Radford et al. 2022, arXiv 2212.04356,
//         section 2.2

#include <algorithm>
#include <string>

#include "models/operations/nested.hpp"
#include "models/operations/tables.hpp"
#include "models/operations/transformer.hpp"

namespace orrery::models {

namespace {

/// The model whose embedding an encoder of tokens has.
Model source_model(const Model& model) {
  Model own = model;
  own.encoder.reset();
  own.front.reset();
  own.embedding.positions = model.encoder->position_rows > 0 ? Positions::learned : Positions::none;
  own.embedding.max_positions = model.encoder->position_rows;
  own.embedding.extra_position_rows = 0;
  if (model.encoder->vocab > 0) own.embedding.vocab = model.encoder->vocab;
  return own;
}

/// Two convolutions over frames of sound, which are stored as the micro-batch's tokens are.
class FramesBuilder : private BlockScope, private TransformerBuilder {
 public:
  FramesBuilder(const BlockInputs& inputs, Pass pass)
      : BlockScope{inputs, "frames", pass}, TransformerBuilder{static_cast<BlockScope&>(*this)} {}

  Block forward() {
    const OperandId ids = block_.operand("tokens", Role::source, DType::int64, {1, 1, tokens()});
    const OperandId frames = wide("frames", Role::saved, 2, first().in);
    block_.add(OpKind::cast, "frames", {ids}, {frames}).bytes =
        Bytes{block_.at(frames).bytes().count() / taps};
    convolve(first(), frames, 2);
    const OperandId joined = wide("conv2.in", Role::saved, 1, second().in);
    const OperandId active = wide("conv1.active", Role::temporary, 2, hidden());
    // Three neighbours of a step: a view to the kernel.
    block_.add(OpKind::cast, "conv2.in", {active}, {joined}).bytes = Bytes{};
    convolve(second(), joined, 1);
    Operation& op =
        block_.add(OpKind::add, "positions", {wide("conv2.active", Role::temporary, 1, hidden())},
                   {rows("y", Role::output)});
    op.mutable_by_position() = true;
    block_.read(op, parameter(positions()));
    return block_.finish();
  }

  Block backward() {
    const OperandId dy = rows("y.grad", Role::input);
    Operation& op = block_.add(OpKind::add_backward, "positions.backward", {dy}, {});
    op.dtype = storage_;
    op.mutable_by_position() = true;
    block_.write(op, gradient(positions(), dy));
    const OperandId d_joined = wide("conv2.in.grad", Role::temporary, 1, second().in);
    const OperandId d_active = wide("conv1.active.grad", Role::temporary, 2, hidden());
    convolve_backward(second(), wide("conv2.in", Role::saved, 1, second().in), dy, d_joined, 1);
    block_.add(OpKind::cast, "conv2.in.backward", {d_joined}, {d_active}).bytes = Bytes{};
    convolve_backward(first(), wide("frames", Role::saved, 2, first().in), d_active,
                      wide("frames.grad", Role::temporary, 2, first().in), 2);
    Block made = block_.finish();
    std::erase_if(made.operations,
                  [](const Operation& each) { return each.name == "conv1.dgrad"; });
    link(made);
    return made;
  }

 private:
  static constexpr std::int64_t taps = 3;

  Linear first() const {
    return {.name = "conv1",
            .in = taps * inputs_.model.encoder->frame_columns,
            .out = hidden(),
            .bias = true,
            .low_precision = false};
  }
  Linear second() const {
    return {.name = "conv2",
            .in = taps * hidden(),
            .out = hidden(),
            .bias = true,
            .low_precision = false};
  }
  ModelTensor positions() const {
    return {.name = "positions.weight",
            .uncut = {1, inputs_.model.encoder->position_rows, hidden()},
            .initial = {.deviation = inputs_.model.initial_deviation}};
  }
  /// [times * T, columns]
  OperandId wide(std::string_view name, Role role, std::int64_t times, std::int64_t columns) {
    return block_.operand(name, role, storage_, {1, times * tokens(), columns},
                          rows_layout(inputs_.plan));
  }
  void convolve(const Linear& of, OperandId in, std::int64_t times) {
    const OperandId out = wide(of.name + ".out", Role::saved, times, hidden());
    linear_.forward(of, in, out);
    block_.add(OpKind::activation, of.name + ".activation", {out},
               {wide(of.name + ".active", Role::temporary, times, hidden())});
  }
  void convolve_backward(const Linear& of, OperandId in, OperandId d_active, OperandId d_in,
                         std::int64_t times) {
    const OperandId d_out = wide(of.name + ".out.grad", Role::temporary, times, hidden());
    block_.add(OpKind::activation_backward, of.name + ".activation.backward",
               {d_active, wide(of.name + ".out", Role::saved, times, hidden())}, {d_out});
    linear_.backward(of, in, d_out, d_in);
  }
};

/// Reads the rows of an encoder that is not in the step.
class GivenRowsBuilder : private BlockScope, private TransformerBuilder {
 public:
  explicit GivenRowsBuilder(const BlockInputs& inputs)
      : BlockScope{inputs, "given", Pass::forward},
        TransformerBuilder{static_cast<BlockScope&>(*this)} {}

  Block forward() {
    const OperandId ids = block_.operand("given", Role::source, DType::int64, {1, 1, tokens()});
    const OperandId rows = carried_rows("encoded", inputs_.plan.batch.seq_len);
    block_.add(OpKind::cast, "encoded", {ids}, {rows}).bytes = block_.at(rows).bytes() * 2;
    return block_.finish();
  }
};

/// Sets the role of an operand that nesting made an inner one.
void pass_on(Block& block, std::string_view name, Role role) {
  if (const auto id = block.find(name)) block.operands[*id].role = role;
}

Block of_length(Block block, std::int64_t seq_len) {
  for (Operation& op : block.operations) op.seq_len = seq_len;
  return block;
}

/// The tables that the two sides share.
std::vector<Joined> shared_tables(const Model& model) {
  if (model.encoder->vocab > 0 || model.encoder->frame_columns > 0) return {};
  return {{"embedding.weight", "embedding.weight"},
          {"embedding.weight.grad", "embedding.weight.grad"},
          {"project_in.weight", "project_in.weight"},
          {"project_in.weight.grad", "project_in.weight.grad"}};
}

std::vector<Joined> joined_with(std::vector<Joined> all, const Joined& more) {
  all.push_back(more);
  return all;
}

}  // namespace

Plan source_plan(const BlockInputs& inputs) {
  Plan own = inputs.plan;
  own.batch.seq_len = source_length(inputs.model);
  own.batch.documents = {};
  return own;
}

BlockPair with_source(const BlockInputs& inputs, const BlockPair& embedding) {
  const Plan plan = source_plan(inputs);
  const std::int64_t length = plan.batch.seq_len;
  if (inputs.model.encoder->given()) {
    Block with = embedding.forward;
    nest(with, of_length(GivenRowsBuilder{inputs.of(inputs.model, plan)}.forward(), length), "",
         {});
    link(with);
    return {std::move(with), embedding.backward};
  }
  const Model own = source_model(inputs.model);
  const bool sound = inputs.model.encoder->frame_columns > 0;
  const BlockInputs source = inputs.of(sound ? inputs.model : own, plan);
  const BlockPair rows = sound ? BlockPair{FramesBuilder{source, Pass::forward}.forward(),
                                           FramesBuilder{source, Pass::backward}.backward()}
                               : source_embedding_blocks(source);
  const std::vector<Joined> shared = shared_tables(inputs.model);
  Block forward, backward;
  forward.name = embedding.forward.name;
  backward.name = embedding.backward.name;
  nest(forward, embedding.forward, "", {{"y", "target"}});
  nest(forward, of_length(rows.forward, length), "source.", joined_with(shared, {"y", "y"}));
  nest(backward, embedding.backward, "", {{"y.grad", "target.grad"}});
  nest(backward, of_length(rows.backward, length), "source.",
       joined_with(shared, {"y.grad", "y.grad"}));
  pass_on(forward, "target", Role::carried);
  pass_on(forward, "y", Role::output);
  pass_on(backward, "target.grad", Role::carried);
  pass_on(backward, "y.grad", Role::input);
  link(forward);
  link(backward);
  return {std::move(forward), std::move(backward)};
}

}  // namespace orrery::models
