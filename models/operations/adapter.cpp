// A LoRA adapter next to a linear layer: y += scale * (dropout(x) A) B, with A [in, rank] and B
// [rank, out] in 16 bits whatever the layer computes in, each a linear layer of its own. Tensor
// parallelism that cuts the layer's outputs cuts B's; where it cuts the layer's inputs it cuts A's;
// the other matrix is whole on every rank. Dropout, scale and both additions are separate kernels:
// for n input and m output elements, forward moves 5 n + 10 m bytes on top of the GEMMs, backward
// 11 n + 4 m.
// Source  Hu et al. 2021, "LoRA", arXiv 2106.09685; ParallelLinearAdapter of NVIDIA NeMo,
//         nemo/collections/llm/peft/utils.py

#include "models/operations/layouts.hpp"
#include "models/operations/linear.hpp"
#include "models/plan/derived.hpp"

namespace orrery::models {

namespace {

Linear adapter_matrix(std::string name, std::int64_t in, std::int64_t out) {
  return {.name = std::move(name), .in = in, .out = out, .low_precision = false, .adapter = true};
}

Linear matrix_a(const Linear& layer, std::int64_t rank) {
  Linear a = adapter_matrix(layer.name + ".lora_a", layer.in, rank);
  if (!layer.sharding.axes(Dimension::rows).empty()) a.sharding = layer.sharding;
  return a;
}

Linear matrix_b(const Linear& layer, std::int64_t rank) {
  Linear b = adapter_matrix(layer.name + ".lora_b", rank, layer.out);
  b.begins_zero = true;
  if (!layer.sharding.axes(Dimension::columns).empty()) b.sharding = layer.sharding;
  return b;
}

}  // namespace

bool LinearBuilder::adapts(const Linear& layer) const {
  const Plan& plan = inputs_.plan;
  return trains_adapters(plan) && layer.target && plan.lora_targets.has(*layer.target);
}

/// The operand that A multiplies: the layer's input, or its copy after dropout.
OperandId LinearBuilder::adapter_input(const Linear& layer, OperandId input) {
  if (!inputs_.plan.lora_dropout) return input;
  const Operand original = block_.at(input);
  return block_.operand(layer.name + ".lora_in", Role::saved, storage(), original.uncut,
                        original.sharding);
}

/// [T, rank], in the layout of the rows between layers.
OperandId LinearBuilder::adapter_rows(const Linear& layer, std::string_view suffix, OperandId like,
                                      Role role) {
  return block_.operand(layer.name + std::string{suffix}, role, storage(),
                        {1, block_.at(like).uncut[1], inputs_.plan.lora_rank},
                        rows_layout(inputs_.plan));
}

void LinearBuilder::adapter_forward(const Linear& layer, OperandId input, OperandId output) {
  const std::int64_t rank = inputs_.plan.lora_rank;
  const OperandId source = adapter_input(layer, input);
  if (source != input) {
    const Operand original = block_.at(input);
    const OperandId mask = block_.operand(layer.name + ".lora_mask", Role::saved, DType::uint8,
                                          original.uncut, original.sharding);
    block_.add(OpKind::add, layer.name + ".lora_dropout", {input}, {source, mask});
  }
  const OperandId middle = adapter_rows(layer, ".lora_middle", input, Role::saved);
  const Operand made = block_.at(output);
  const OperandId out = block_.operand(layer.name + ".lora_out", Role::temporary, storage(),
                                       made.uncut, made.sharding);
  forward(matrix_a(layer, rank), source, middle);
  forward(matrix_b(layer, rank), middle, out);
  block_.add(OpKind::cast, layer.name + ".lora_scale", {out}, {out});
  block_.add(OpKind::add, layer.name + ".lora_add", {output, out}, {output});
}

void LinearBuilder::adapter_backward(const Linear& layer, OperandId input,
                                     OperandId output_gradient, OperandId input_gradient) {
  const std::int64_t rank = inputs_.plan.lora_rank;
  const OperandId source = adapter_input(layer, input);
  const Operand dy = block_.at(output_gradient);
  const Operand dx = block_.at(input_gradient);
  const OperandId d_out = block_.operand(layer.name + ".lora_out.grad", Role::temporary, storage(),
                                         dy.uncut, dy.sharding);
  const OperandId d_in = block_.operand(layer.name + ".lora_in.grad", Role::temporary, storage(),
                                        dx.uncut, dx.sharding);
  const OperandId middle = adapter_rows(layer, ".lora_middle", input, Role::saved);
  const OperandId d_middle = adapter_rows(layer, ".lora_middle.grad", input, Role::temporary);
  block_.add(OpKind::cast, layer.name + ".lora_scale.backward", {output_gradient}, {d_out});
  backward(matrix_b(layer, rank), middle, d_out, d_middle);
  backward(matrix_a(layer, rank), source, d_middle, d_in);
  if (source != input) {
    const Operand original = block_.at(input);
    const OperandId mask = block_.operand(layer.name + ".lora_mask", Role::saved, DType::uint8,
                                          original.uncut, original.sharding);
    block_.add(OpKind::add_backward, layer.name + ".lora_dropout.backward", {d_in, mask}, {d_in});
  }
  block_.add(OpKind::add, layer.name + ".lora_add.backward", {input_gradient, d_in},
             {input_gradient});
}

}  // namespace orrery::models
