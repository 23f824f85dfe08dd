#include "models/operations/linear.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "hardware/gpu/generation.hpp"
#include "models/plan/derived.hpp"

namespace orrery::models {

namespace {

ModelTensor weight_of(const Linear& layer, const Model& model) {
  return {.name = layer.name + ".weight",
          .uncut = {std::max<std::int64_t>(1, layer.experts), layer.in, layer.out},
          .sharding = layer.sharding,
          .initial = {layer.begins_zero ? Initial::Kind::zeros : Initial::Kind::normal,
                      model.initial_deviation},
          .tied_to = layer.tied_to,
          .transposed = layer.stored_transposed,
          .view = layer.experts > 0 ? MeshView::experts : MeshView::dense,
          .adapter = layer.adapter};
}

ModelTensor bias_of(const Linear& layer) {
  return {.name = layer.name + ".bias",
          .uncut = {std::max<std::int64_t>(1, layer.experts), 1, layer.out},
          .sharding = layer.sharding,
          .initial = {Initial::Kind::zeros},
          .view = layer.experts > 0 ? MeshView::experts : MeshView::dense};
}

/// Is the bias added in the GEMM's epilogue? Outputs that are partial sums leave it to the residual
/// addition; of the ranks that share an expert the first adds it.
bool adds_bias(const Linear& layer) {
  return layer.bias && (layer.experts > 0 || layer.sharding.axes(Dimension::rows).empty());
}

/// Layout in which a GEMM reads [rows, columns] whose columns meet the weight's `dimension`.
Sharding read_by(Sharding held, const Sharding& weight, Dimension dimension) {
  for (const AxisRow& each : axes) {
    const auto& cut = weight.cut(each.axis);
    if (!cut || cut->dimension == Dimension::matrices) continue;  // both are cut alike
    auto& own = held.cut(each.axis);
    const bool along = cut->dimension == dimension;
    if (!along) {
      own.reset();
    } else if (!own || own->dimension != Dimension::columns) {
      own = Cut{Dimension::columns, cut->unit};
    }
  }
  return held;
}

/// Layout in which a GEMM writes [rows, columns] whose columns are the weight's `dimension`; it
/// sums over the weight's other dimension.
Sharding written_by(const Sharding& held, const Sharding& weight, Dimension dimension) {
  Sharding made = read_by(held, weight, dimension);
  const Dimension summed = dimension == Dimension::rows ? Dimension::columns : Dimension::rows;
  made.partial = weight.axes(summed);
  return made;
}

/// Weights that share a scale under QLoRA: NF4 in blocks of 64, each with a scale of 8 bits.
/// Source  Dettmers et al. 2023, "QLoRA", arXiv 2305.14314: 0.127 bits a parameter with double
///         quantisation
constexpr std::int64_t qlora_block = 64;

}  // namespace

DType LinearBuilder::arithmetic(const Linear& layer) const {
  const bool plain = quantisation_of(inputs_.plan.formats.precision) && !layer.low_precision;
  if (plain) return storage();
  return multiplied_in(inputs_.plan.formats.precision, inputs_.software.runs.decodes_blocks);
}

const Quantisation* LinearBuilder::quantisation(const Linear& layer) const {
  return layer.low_precision ? quantisation_of(inputs_.plan.formats.precision) : nullptr;
}

LinearBuilder::Quantised LinearBuilder::copy_of(const Quantisation& how, OperandId source,
                                                Role role, Along along) {
  const Operand original = block_.at(source);
  const bool second = how.both_ways() && along == Along::columns;
  const std::string name =
      fmt::format("{}.{}{}", original.name, hardware::name(how.dtype), second ? ".columns" : "");
  // Only the copy by columns is saved for backward: the weight gradient reads it.
  const Role own = how.both_ways() && !second ? Role::temporary : role;
  const OperandId copy = block_.operand(name, own, how.dtype, original.uncut, original.sharding);
  block_.fill(copy, original.filled);
  if (!how.both_ways()) return {copy, {}};
  const Shape& uncut = original.uncut;
  const OperandId scales =
      block_.operand(name + ".scales", own, how.scale,
                     {uncut[0], uncut[1], (uncut[2] + how.block - 1) / how.block},
                     of_scales(original.sharding, how.block));
  block_.fill(scales, original.filled);
  return {copy, scales};
}

/// Does the kernel that wrote the tensor also find its largest number?
bool LinearBuilder::finds_largest(OperandId source) const {
  const Operation* const writer = block_.writer(source);
  if (writer == nullptr) return false;
  switch (writer->kind) {
    case OpKind::norm:
      return inputs_.plan.formats.fused_amax.has(AmaxKernel::norm);
    case OpKind::activation:
    case OpKind::activation_backward:
      return inputs_.plan.formats.fused_amax.has(AmaxKernel::activation);
    default:
      return false;
  }
}

void LinearBuilder::quantise(const Quantisation& how, OperandId source, Role role,
                             bool with_largest) {
  const std::string name = fmt::format("{}.{}", block_.at(source).name, hardware::name(how.dtype));
  std::optional<OperandId> largest;
  if (with_largest) {
    largest = block_.operand(name + ".largest", Role::temporary, DType::fp32, {1, 1, 1});
    block_.add(OpKind::quantise, name + ".largest", {source}, {*largest});
  }
  const Quantised rows = copy_of(how, source, role, Along::rows);
  Operation& op = block_.add(OpKind::quantise, name, {source}, {rows.copy});
  if (largest) op.reads.push_back(*largest);  // a single number: no traffic
  if (!how.both_ways()) return;
  block_.write(op, *rows.scales);
  if (trains_adapters(inputs_.plan)) return;  // frozen matrices have no weight gradient
  const Quantised columns = copy_of(how, source, role, Along::columns);
  if (inputs_.plan.formats.hadamard_pass) {
    Operation& second =
        block_.add(OpKind::quantise, name + ".hadamard", {source}, {columns.copy, *columns.scales});
    if (largest) second.reads.push_back(*largest);
    return;
  }
  block_.write(op, columns.copy);
  block_.write(op, *columns.scales);
}

/// The quantised copy that a GEMM reads, or the tensor itself where its format is not quantised. A
/// tensor that two layers read is quantised once; a shard of the sequence is quantised before it
/// is gathered.
LinearBuilder::Quantised LinearBuilder::quantised(const Linear& layer, OperandId source, Role role,
                                                  Along along) {
  const Quantisation* how = quantisation(layer);
  if (how == nullptr) return {narrowed(source, role), {}};
  const std::string name = fmt::format("{}.{}", block_.at(source).name, hardware::name(how->dtype));
  if (!block_.find(name)) {
    const bool known = layer.experts == 0 && finds_largest(source);
    quantise(*how, source, role, how->finds_largest && !known);
  }
  return copy_of(*how, source, role, along);
}

OperandId LinearBuilder::narrow_copy(OperandId source, Role role) {
  const Operand wide = block_.at(source);
  if (!inputs_.plan.formats.kbit_upcast || wide.dtype == storage()) return source;
  const OperandId copy = block_.operand(fmt::format("{}.{}", wide.name, hardware::name(storage())),
                                        role, storage(), wide.uncut, wide.sharding);
  block_.fill(copy, wide.filled);
  return copy;
}

/// A tensor that two layers read is cast once.
/// Source  Linear4bit.forward of bitsandbytes: the input is cast to compute_dtype, the output back
///         to the input's format; LoRA's layers cast theirs likewise (peft/tuners/lora/layer.py)
OperandId LinearBuilder::narrowed(OperandId source, Role role) {
  const OperandId copy = narrow_copy(source, role);
  if (copy != source && block_.writer(copy) == nullptr) {
    block_.add(OpKind::cast, block_.at(copy).name, {source}, {copy});
  }
  return copy;
}

void LinearBuilder::widen(const Linear& layer, std::string_view suffix, OperandId written) {
  const Operand& wide = block_.at(written);
  if (!inputs_.plan.formats.kbit_upcast || wide.dtype == storage()) return;
  Operation& cast =
      block_.add(OpKind::cast, fmt::format("{}{}.widen", layer.name, suffix), {written}, {written});
  cast.bytes = wide.moved() + bytes_in(storage(), wide.elements());
}

/// The copy of the input that forward saved for the weight gradient.
LinearBuilder::Quantised LinearBuilder::kept(const Linear& layer, OperandId input) {
  const Quantisation* how = quantisation(layer);
  return how == nullptr ? Quantised{narrow_copy(input, Role::saved), {}}
                        : copy_of(*how, input, Role::saved, Along::columns);
}

/// Is the weight stored in 8 bits? A frozen matrix is, if only fp8 GEMMs with one scale per tensor
/// read it.
bool LinearBuilder::kept_in_8_bits(const Linear& layer) const {
  const Quantisation* how = quantisation(layer);
  return inputs_.plan.formats.low_precision_gather && inputs_.plan.task == Task::lora &&
         how != nullptr && how->dtype == DType::fp8 && !how->both_ways();
}

bool LinearBuilder::stored_in_4_bits(const Linear& layer) const {
  return inputs_.plan.task == Task::qlora && layer.target && layer.target != LoraTarget::head;
}

OperandId LinearBuilder::wide_weight(const Linear& layer) {
  const DType held = layer.adapter ? storage() : activation_dtype(inputs_.plan);
  return block_.parameter(weight_of(layer, inputs_.model), held);
}

/// The weight as GEMMs read it. One stored in 4 bits (QLoRA) is dequantised to 16 bits before each;
/// the vocabulary head is not stored so.
/// Source  bitsandbytes' replace_with_bnb_linear in Hugging Face's transformers: lm_head is left
/// out
OperandId LinearBuilder::weight(const Linear& layer) {
  ModelTensor tensor = weight_of(layer, inputs_.model);
  if (kept_in_8_bits(layer)) return block_.parameter(tensor, DType::fp8);
  if (!stored_in_4_bits(layer)) return narrowed(wide_weight(layer), Role::saved);
  const OperandId wide = block_.operand(layer.name + ".weight.wide", Role::temporary, storage(),
                                        tensor.uncut, tensor.sharding);
  const OperandId stored = block_.parameter(tensor, DType::fp4);
  ModelTensor scales = tensor;
  scales.name += ".scales";
  scales.uncut[2] = (scales.uncut[2] + qlora_block - 1) / qlora_block;
  scales.sharding = of_scales(scales.sharding, qlora_block);
  const OperandId scale = block_.parameter(scales, DType::uint8);
  block_.add(OpKind::quantise, layer.name + ".dequantise", {stored, scale}, {wide});
  return wide;
}

/// The weight as the input gradient reads it. Where fp8 GEMMs need both operands K-contiguous, that
/// is a transposed copy, which is either kept or, as here, made again for each GEMM. Of a weight in
/// fp32 next to 4-bit ones it is the 16-bit copy of forward, which autograd keeps.
/// Source  Megatron-Core, disable_parameter_transpose_cache
OperandId LinearBuilder::weight_for_dgrad(const Linear& layer) {
  if (inputs_.plan.formats.kbit_upcast && !stored_in_4_bits(layer)) {
    return narrow_copy(wide_weight(layer), Role::saved);
  }
  const OperandId stored = weight(layer);
  const Quantisation* how = quantisation(layer);
  const bool one_scale = how != nullptr && how->dtype == DType::fp8 && !how->both_ways();
  const bool needed = hardware::generation_named(inputs_.generation).fp8_along_k;
  if (!inputs_.plan.formats.transpose_weights || !one_scale || !needed) return stored;
  const Operand original = block_.at(stored);
  const OperandId columns = block_.operand(layer.name + ".weight.columns", Role::temporary,
                                           DType::fp8, original.uncut, original.sharding);
  block_.add(OpKind::transpose, layer.name + ".transpose", {stored}, {columns});
  return columns;
}

Operation& LinearBuilder::product(const Linear& layer, std::string_view suffix, OperandId a,
                                  OperandId b, OperandId out, GemmShape shape) {
  const std::string name = layer.name + std::string{suffix};
  if (layer.experts == 0) return block_.gemm(name, a, b, out, shape, arithmetic(layer));
  const std::int64_t here = block_.at(a).shape[0];
  (shape.transpose_a ? shape.k : shape.m) *= here;
  shape.batch = here;
  return block_.grouped_gemm(name, a, b, out, shape, arithmetic(layer));
}

void LinearBuilder::forward(const Linear& layer, OperandId input, OperandId output) {
  const auto [x, scales] = quantised(layer, input, Role::saved, Along::rows);
  const OperandId w_id = weight(layer);
  const Sharding reads = read_by(block_.at(x).sharding, layer.sharding, Dimension::rows);
  const Shape& w = block_.at(w_id).shape;
  Operation& op =
      product(layer, "", x, w_id, output, {.m = block_.shape(x, reads)[1], .n = w[2], .k = w[1]});
  block_.need(op, x, reads);
  block_.make(op, output,
              written_by(block_.at(output).sharding, layer.sharding, Dimension::columns));
  if (scales) block_.read(op, *scales);
  if (adds_bias(layer)) block_.read(op, block_.parameter(bias_of(layer), storage()));
  widen(layer, "", output);
  for (const AdaptedColumns& each : adapted(layer)) adapter_forward(each, input, output);
}

void LinearBuilder::backward(const Linear& layer, OperandId input, OperandId output_gradient,
                             OperandId input_gradient) {
  const auto [dy, scales] = quantised(layer, output_gradient, Role::temporary, Along::rows);
  const Quantised x = kept(layer, input);
  const OperandId w_id = weight_for_dgrad(layer);
  const Sharding reads = read_by(block_.at(dy).sharding, layer.sharding, Dimension::columns);
  const Shape& w = block_.at(w_id).shape;
  Operation& op =
      product(layer, ".dgrad", dy, w_id, input_gradient,
              {.m = block_.shape(dy, reads)[1], .n = w[1], .k = w[2], .transpose_b = true});
  // The weight gradient's input is gathered before this GEMM, so that the gather overlaps it.
  block_.need(op, x.copy, read_by(block_.at(x.copy).sharding, layer.sharding, Dimension::rows));
  block_.need(op, dy, reads);
  block_.make(op, input_gradient,
              written_by(block_.at(input_gradient).sharding, layer.sharding, Dimension::rows));
  if (scales) block_.read(op, *scales);
  widen(layer, ".dgrad", input_gradient);
  const Quantised dy_columns = quantised(layer, output_gradient, Role::temporary, Along::columns);
  weight_gradient(layer, x, dy_columns);
  for (const AdaptedColumns& each : adapted(layer)) {
    adapter_backward(each, input, output_gradient, input_gradient);
  }
}

/// Ranks that read different rows of the input hold partial sums of the weight gradient.
void LinearBuilder::weight_gradient(const Linear& layer, const Quantised& input,
                                    const Quantised& output_gradient) {
  const auto [x, x_scales] = input;
  const auto [dy, dy_scales] = output_gradient;
  const DType sums = gradient_dtype(inputs_.plan, inputs_.software);
  const Sharding reads_x = read_by(block_.at(x).sharding, layer.sharding, Dimension::rows);
  const Sharding reads_dy = read_by(block_.at(dy).sharding, layer.sharding, Dimension::columns);
  const AxisSet partial = reads_x.axes(Dimension::rows);
  const OperandId gradient = block_.gradient(weight_of(layer, inputs_.model), sums, partial);
  const bool separate = inputs_.software.accumulation == Accumulation::separate;
  const OperandId out =
      separate ? block_.operand(layer.name + ".weight.fresh", Role::temporary, storage(),
                                block_.at(gradient).uncut, block_.at(gradient).sharding)
               : gradient;
  const Shape& w = block_.at(gradient).shape;
  Operation& op = product(layer, ".wgrad", x, dy, out,
                          {.m = w[1],
                           .n = w[2],
                           .k = block_.shape(x, reads_x)[1],
                           .transpose_a = true,
                           .accumulate = !separate});
  block_.need(op, x, reads_x);
  block_.need(op, dy, reads_dy);
  if (x_scales) block_.read(op, *x_scales);
  if (dy_scales) block_.read(op, *dy_scales);
  const bool beside = adds_bias(layer) && layer.stored_transposed;
  const OperandId of_bias =
      adds_bias(layer) ? block_.gradient(bias_of(layer), sums, partial) : gradient;
  if (adds_bias(layer) && !beside) block_.write(op, of_bias);
  if (beside) {  // the transposed GEMM does not read dy row by row: another kernel sums its rows
    Operation& adds =
        block_.add(OpKind::add_backward, layer.name + ".bias.backward", {dy}, {of_bias});
    adds.dtype = storage();
    block_.need(adds, dy, reads_dy);
  }
  if (separate) {
    block_.add(OpKind::accumulate, layer.name + ".accumulate", {out, gradient}, {gradient}).dtype =
        sums;
  }
}

}  // namespace orrery::models
