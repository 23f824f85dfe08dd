// A frozen encoder of images in front of a language model. Its operations are in the embedding's
// block, forward only; nothing of them is saved but the projector's inputs, and backward has the
// projector's gradients alone. With P patches of all images of a micro-batch, c numbers a patch, an
// encoder of width e, m patches that become one row, a projector of width j and the model's h:
//   patches    [P, c] x [c, e] + bias + positions
//   encoder    layers on [P, e]; patches of an image attend to each other; last norm
//   projector  [P / m, m e] x [m e, j], gelu, [j, h]; its rows are put in the places of tokens
// Left out: decoding of images, the input's way to the GPU, and positions that the language model
// gives to rows and columns of an image.
// Source  Liu et al. 2023, arXiv 2310.03744; Qwen2-VL, arXiv 2409.12191

#include <algorithm>
#include <string>

#include "models/operations/nested.hpp"
#include "models/operations/transformer.hpp"

namespace orrery::models {

namespace {

/// The patches' matrix and positions, or the norm after the last layer.
class EncoderEnds : private BlockScope, private TransformerBuilder {
 public:
  EncoderEnds(const BlockInputs& encoder, const FrontEncoder& front)
      : BlockScope{encoder, "encoder.ends", Pass::forward},
        TransformerBuilder{static_cast<BlockScope&>(*this)},
        front_{front} {}

  Block patches() {
    const Model& model = inputs_.model;
    const OperandId batch =
        block_.operand("tokens", Role::tokens, DType::int64, {1, 1, tokens()}, of_tokens({}));
    const OperandId pixels =
        features("pixels", Role::temporary, front_.patch_columns, rows_layout(inputs_.plan));
    block_.add(OpKind::cast, "pixels", {batch}, {pixels}).bytes = block_.at(pixels).bytes();
    const OperandId y = rows("y", Role::output);
    const bool placed = position_rows(model) > 0;
    const OperandId out = placed ? rows("patches.out", Role::temporary) : y;
    linear_.forward({.name = "patches",
                     .in = front_.patch_columns,
                     .out = hidden(),
                     .bias = true,
                     .low_precision = false},
                    pixels, out);
    if (!placed) return block_.finish();
    Operation& op = block_.add(OpKind::add, "positions", {out}, {y});
    op.mutable_by_position() = true;
    block_.read(
        op, parameter({.name = "positions.weight", .uncut = {1, position_rows(model), hidden()}}));
    return block_.finish();
  }

  Block last_norm() {
    norm("last_norm", rows("x", Role::input), rows("y", Role::output));
    return block_.finish();
  }

 private:
  const FrontEncoder& front_;
};

/// From the encoder's rows to those of tokens.
class ProjectorBuilder : private BlockScope, private TransformerBuilder {
 public:
  /// `rows` has the plan of the model, of sequences as long as their images' rows.
  ProjectorBuilder(const BlockInputs& rows, const Plan& plan, Pass pass)
      : BlockScope{rows, "projector", pass},
        TransformerBuilder{static_cast<BlockScope&>(*this)},
        plan_{plan},
        front_{*rows.model.front} {}

  Block forward() {
    const std::int64_t columns = front_.encoder->hidden;
    const OperandId encoded =
        block_.operand("x", Role::input, storage_, {1, tokens() * front_.merged, columns},
                       rows_layout(inputs_.plan));
    const OperandId image = rows("image", Role::temporary), text = text_rows("text", Role::output);
    block_.add(OpKind::cast, "merge", {encoded}, {merged()});
    linear_.forward(up(), merged(), inner("up.out", Role::saved));
    block_.add(OpKind::activation, "activation", {inner("up.out", Role::saved)},
               {inner("activation.out", Role::saved)});
    linear_.forward(down(), inner("activation.out", Role::saved), image);
    Operation& place = block_.add(OpKind::add, "place", {text, image}, {text});
    place.bytes = block_.at(image).bytes() * 2;
    block_.read(place, parameter(bias_of("down.bias")));
    return block_.finish();
  }

  Block backward() {
    const OperandId dy = text_rows("text.grad", Role::input);
    const OperandId d_image = rows("image.grad", Role::temporary);
    const OperandId d_active = inner("activation.out.grad", Role::temporary);
    const OperandId d_inner = inner("up.out.grad", Role::temporary);
    Operation& take = block_.add(OpKind::add_backward, "take", {dy}, {d_image});
    take.bytes = block_.at(d_image).bytes() * 2;
    take.dtype = storage_;
    block_.write(take, gradient(bias_of("down.bias"), d_image));
    linear_.backward(down(), inner("activation.out", Role::saved), d_image, d_active);
    block_.add(OpKind::activation_backward, "activation.backward",
               {d_active, inner("up.out", Role::saved)}, {d_inner});
    linear_.backward(up(), merged(), d_inner,
                     features("merged.grad", Role::temporary, up().in, rows_layout(inputs_.plan)));
    Block made = block_.finish();
    // The encoder is frozen: its rows have no gradient.
    std::erase_if(made.operations, [](const Operation& op) { return op.name == "up.dgrad"; });
    link(made);
    return made;
  }

 private:
  OperandId merged() { return features("merged", Role::saved, up().in, rows_layout(inputs_.plan)); }
  OperandId inner(std::string_view name, Role role) {
    return features(name, role, front_.projector);
  }
  OperandId text_rows(std::string_view name, Role role) {
    return block_.operand(name, role, storage_, {1, tokens_of(plan_), hidden()},
                          rows_layout(plan_));
  }
  Linear up() const {
    return {.name = "up",
            .in = front_.merged * front_.encoder->hidden,
            .out = front_.projector,
            .bias = true,
            .sharding = by_columns(),
            .low_precision = false};
  }
  Linear down() const {
    return {.name = "down",
            .in = front_.projector,
            .out = hidden(),
            .sharding = by_rows(),
            .low_precision = false};
  }

  const Plan& plan_;
  const FrontEncoder& front_;
};

Block frozen(Block block) {
  for (Operand& each : block.operands) {
    each.frozen = each.frozen || each.role == Role::parameter;
  }
  return block;
}

/// The plan with sequences of another length, `count` in place of each.
Plan with_sequences(Plan plan, std::int64_t count, std::int64_t length) {
  plan.batch.micro *= count;
  plan.batch.seq_len = length;
  plan.batch.documents = {};
  return plan;
}

std::string of_layer(std::int64_t layer) {
  return "encoder." + std::to_string(layer) + ".";
}

}  // namespace

BlockPair with_front(const BlockInputs& inputs, const BlockPair& embedding) {
  const FrontEncoder& front = *inputs.model.front;
  const Plan of_patches = with_sequences(inputs.plan, front.images, front.patches);
  const Plan of_rows = with_sequences(inputs.plan, 1, front.rows());
  const BlockInputs encoder = inputs.of(*front.encoder, of_patches);
  const BlockInputs rows = inputs.of(inputs.model, of_rows);
  const LayerList& layers = front.encoder->layers;
  Block forward, backward;
  forward.name = embedding.forward.name;
  backward.name = embedding.backward.name;
  nest(forward, embedding.forward, "", {});
  nest(forward, frozen(EncoderEnds{encoder, front}.patches()), "encoder.",
       {{"y", of_layer(0) + "x"}});
  for (std::int64_t i = 0; i < layers.size(); ++i) {
    nest(forward, frozen(layer_blocks(encoder, layers[i]).forward), of_layer(i),
         {{"y", of_layer(i + 1) + "x"}});
  }
  nest(forward, frozen(EncoderEnds{encoder, front}.last_norm()), "encoder.",
       {{"x", of_layer(layers.size()) + "x"}, {"y", "encoder.rows"}});
  nest(forward, ProjectorBuilder{rows, inputs.plan, Pass::forward}.forward(), "projector.",
       {{"x", "encoder.rows"}, {"text", "y"}});
  nest(backward, embedding.backward, "", {});
  nest(backward, ProjectorBuilder{rows, inputs.plan, Pass::backward}.backward(), "projector.",
       {{"text.grad", "y.grad"}});
  link(forward);
  link(backward);
  return {std::move(forward), std::move(backward)};
}

}  // namespace orrery::models
