// A LoRA adapter next to a linear layer: y += scale * (dropout(x) A) B, with A [in, rank] and B
// [rank, out] in 16 bits whatever the layer computes in, each a linear layer of its own. Tensor
// parallelism that cuts the layer's outputs cuts B's; where it cuts the layer's inputs it cuts A's;
// the other matrix is whole on every rank. Where user buffers overlap the layer's collectives they
// return no gathered input: the adapter gathers its own, which nothing hides, and A's rank is cut,
// too. It is gathered again for A's gradient; that stands for the gather which NeMo's adapter makes
// of its output next to a layer whose inputs are cut.
// Each expert has an adapter of its own. Where parts of a layer's columns are targets (queries,
// keys or values; gate or up), each part has an adapter of its own, with an A of its own, which
// adds to those columns alone. Dropout, scale and both additions are separate kernels: for n input
// and m output elements, forward moves 5 n + 10 m bytes on top of the GEMMs, backward 11 n + 4 m.
//
// Source  Hu et al. 2021, "LoRA", arXiv 2106.09685; ParallelLinearAdapter of NVIDIA NeMo,
//         nemo/collections/llm/peft/utils.py

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "models/operations/layouts.hpp"
#include "models/operations/linear.hpp"
#include "models/plan/derived.hpp"

namespace orrery::models {

namespace {

/// The layer's layout without its cuts along `dimension`, which is the rank of an adapter's matrix.
Sharding whole_along(Dimension dimension, Sharding layout) {
  for (const AxisRow& each : axes) {
    auto& cut = layout.cut(each.axis);
    if (cut && cut->dimension == dimension) cut.reset();
  }
  if (dimension == Dimension::columns) layout.column_groups = {};
  return layout;
}

/// Is A cut by columns, too? So it is next to a layer whose outputs are cut over the tensor group
/// and whose collectives user buffers overlap, where the group divides the rank.
bool cuts_rank(const Linear& layer, const BlockInputs& inputs) {
  const auto& cut = layer.sharding.cut(MeshAxis::tensor);
  const bool overlaps = inputs.plan.overlap.tensor && inputs.software.overlap.tensor_exposed < 1;
  return overlaps && cut && cut->dimension == Dimension::columns &&
         inputs.plan.adapters.rank % inputs.plan.tensor == 0;
}

Linear matrix_a(const Linear& layer, const BlockInputs& inputs) {
  Sharding sharding = whole_along(Dimension::columns, layer.sharding);
  if (cuts_rank(layer, inputs)) sharding.cut(MeshAxis::tensor) = Cut{Dimension::columns};
  return {.name = layer.name + ".lora_a",
          .in = layer.in,
          .out = inputs.plan.adapters.rank,
          .sharding = sharding,
          .low_precision = false,
          .experts = layer.experts,
          .adapter = true};
}

/// Query, key and value, or gate and up: parts of the layer that are separate modules elsewhere.
std::int8_t separate_parts(const Linear& layer) {
  const auto& groups = layer.sharding.column_groups;
  const auto parts =
      std::count_if(groups.begin(), groups.end(), [](auto each) { return each > 0; });
  return static_cast<std::int8_t>(std::max<std::ptrdiff_t>(1, parts));
}

/// Marks the operations of a layer's adapter.
void mark(std::span<Operation> operations, const Linear& layer) {
  for (Operation& each : operations) {
    each.module.adapter = true;
    each.module.adapters = separate_parts(layer);
  }
}

Linear matrix_b(const Linear& layer, std::int64_t rank) {
  return {.name = layer.name + ".lora_b",
          .in = rank,
          .out = layer.out,
          .sharding = whole_along(Dimension::rows, layer.sharding),
          .low_precision = false,
          .experts = layer.experts,
          .adapter = true,
          .begins_zero = true};
}

}  // namespace

std::vector<LinearBuilder::AdaptedColumns> LinearBuilder::adapted(const Linear& layer) const {
  const WordSet<LoraTarget>& targets = inputs_.plan.adapters.targets;
  if (!trains_adapters(inputs_.plan) || !layer.target) return {};
  std::vector<AdaptedColumns> found;
  if (targets.has(*layer.target)) {
    found.push_back({.layer = layer});
    return found;
  }
  std::int64_t first = 0;
  for (const MatrixPart& each : layer.parts) {
    Linear part = layer;
    part.name = fmt::format("{}.{}", layer.name, word_of(lora_target_words, each.target));
    part.out = each.columns;
    part.sharding.column_groups = {};
    if (targets.has(each.target)) found.push_back({.layer = part, .first = first});
    first += local_extent(each.columns, part.sharding, Dimension::columns, block_.mesh());
  }
  return found;
}

/// The operand that A multiplies: the layer's input, or its copy after dropout.
OperandId LinearBuilder::adapter_input(const Linear& layer, OperandId input) {
  if (!inputs_.plan.adapters.dropout) return input;
  return adapter_copy(layer, ".lora_in", input, Role::saved, storage());
}

/// [T, rank], in the layout of the rows between layers, or cut by columns where A is; of
/// experts, in that of their rows.
OperandId LinearBuilder::adapter_rows(const Linear& layer, std::string_view suffix, OperandId like,
                                      Role role) {
  const Operand input = block_.at(like);
  const bool cut = cuts_rank(layer, inputs_);
  const Sharding between = cut ? of_tokens(by_columns()) : rows_layout(inputs_.plan);
  const OperandId rows =
      block_.operand(layer.name + std::string{suffix}, role, storage(),
                     {input.uncut[0], input.uncut[1], inputs_.plan.adapters.rank},
                     layer.experts > 0 ? at_experts() : between);
  block_.fill(rows, input.filled);
  return rows;
}

/// [T, columns] of what the adapter adds to, in the layout of `like`, whose columns these are.
OperandId LinearBuilder::adapter_columns(const AdaptedColumns& columns, std::string_view suffix,
                                         OperandId like) {
  if (!columns.first) return adapter_copy(columns.layer, suffix, like, Role::temporary, storage());
  const Operand whole = block_.at(like);
  Sharding sharding = whole.sharding;
  sharding.column_groups = {};
  const OperandId part =
      block_.operand(columns.layer.name + std::string{suffix}, Role::temporary, storage(),
                     {whole.uncut[0], whole.uncut[1], columns.layer.out}, sharding);
  block_.fill(part, whole.filled);
  return part;
}

/// Another tensor of the same shape and layout.
OperandId LinearBuilder::adapter_copy(const Linear& layer, std::string_view suffix, OperandId like,
                                      Role role, DType dtype) {
  const Operand original = block_.at(like);
  const OperandId copy = block_.operand(layer.name + std::string{suffix}, role, dtype,
                                        original.uncut, original.sharding);
  block_.fill(copy, original.filled);
  return copy;
}

void LinearBuilder::adapter_forward(const AdaptedColumns& columns, OperandId input,
                                    OperandId output) {
  const Linear& layer = columns.layer;
  const std::int64_t rank = inputs_.plan.adapters.rank;
  const std::size_t first = block_.size();
  const OperandId source = adapter_input(layer, input);
  if (source != input) {
    const OperandId mask = adapter_copy(layer, ".lora_mask", input, Role::saved, DType::uint8);
    block_.add(OpKind::add, layer.name + ".lora_dropout", {input}, {source, mask});
  }
  const OperandId middle = adapter_rows(layer, ".lora_middle", input, Role::saved);
  const OperandId out = adapter_columns(columns, ".lora_out", output);
  forward(matrix_a(layer, inputs_), source, middle);
  forward(matrix_b(layer, rank), middle, out);
  block_.add(OpKind::cast, layer.name + ".lora_scale", {out}, {out});
  Operation& sum = block_.add(OpKind::add, layer.name + ".lora_add", {output, out}, {output});
  if (columns.first) {
    sum.mutable_first_column() = *columns.first;
    sum.bytes = block_.at(out).moved() * 3;
  }
  mark(block_.since(first), layer);
}

void LinearBuilder::adapter_backward(const AdaptedColumns& columns, OperandId input,
                                     OperandId output_gradient, OperandId input_gradient) {
  const Linear& layer = columns.layer;
  const std::int64_t rank = inputs_.plan.adapters.rank;
  const std::size_t first = block_.size();
  const OperandId source = adapter_input(layer, input);
  const OperandId d_out = adapter_columns(columns, ".lora_out.grad", output_gradient);
  const OperandId d_in =
      adapter_copy(layer, ".lora_in.grad", input_gradient, Role::temporary, storage());
  const OperandId middle = adapter_rows(layer, ".lora_middle", input, Role::saved);
  const OperandId d_middle = adapter_rows(layer, ".lora_middle.grad", input, Role::temporary);
  Operation& scale =
      block_.add(OpKind::cast, layer.name + ".lora_scale.backward", {output_gradient}, {d_out});
  if (columns.first) {
    scale.mutable_first_column() = *columns.first;
    scale.bytes = block_.at(d_out).moved() * 2;
  }
  backward(matrix_b(layer, rank), middle, d_out, d_middle);
  backward(matrix_a(layer, inputs_), source, d_middle, d_in);
  if (source != input) {
    const OperandId mask = adapter_copy(layer, ".lora_mask", input, Role::saved, DType::uint8);
    block_.add(OpKind::add_backward, layer.name + ".lora_dropout.backward", {d_in, mask}, {d_in});
  }
  block_.add(OpKind::add, layer.name + ".lora_add.backward", {input_gradient, d_in},
             {input_gradient});
  mark(block_.since(first), layer);
}

}  // namespace orrery::models
