#include "models/operations/linear.hpp"

namespace orrery::models {

DType LinearBuilder::arithmetic(const Linear& layer) const {
  return layer.low_precision
             ? compute_dtype(inputs_.plan.precision)
             : (inputs_.plan.precision == Precision::fp8 ? DType::bf16
                                                         : compute_dtype(inputs_.plan.precision));
}

std::int64_t LinearBuilder::rows(const Linear& layer) const {
  return layer.rows > 0 ? layer.rows : shares_.tokens;
}

/// The 8-bit copy that a product reads in fp8; the tensor itself in other formats. What two layers
/// read is quantised once, and a shard of the sequence before it is gathered.
OperandId LinearBuilder::quantised(const Linear& layer, OperandId source, Role role) {
  if (arithmetic(layer) != DType::fp8) return source;
  const Operand& original = block_.at(source);
  const std::string name = original.name + ".fp8";
  if (const auto known = block_.find(name)) return *known;
  const OperandId copy = block_.operand(name, role, DType::fp8, original.shape);
  block_.add(OpKind::quantise, name, {source}, {copy});
  return copy;
}

/// What forward kept of its input: the copy that it multiplied.
OperandId LinearBuilder::kept(const Linear& layer, OperandId input) {
  if (arithmetic(layer) != DType::fp8) return input;
  const Operand& original = block_.at(input);
  return block_.operand(original.name + ".fp8", Role::saved, DType::fp8, original.shape);
}

void LinearBuilder::forward(const Linear& layer, OperandId input, OperandId output) {
  const DType storage = storage_dtype(inputs_.plan.precision);
  const OperandId a = quantised(layer, input, Role::saved);
  const OperandId weight =
      block_.operand(layer.name + ".weight", Role::parameter, storage, {1, layer.in, layer.out});
  Operation& op = block_.gemm(layer.name, a, weight, output,
                              {.m = rows(layer), .n = layer.out, .k = layer.in}, arithmetic(layer));
  if (layer.cut == LinearCut::column) op.full_sequence = {a};
  op.partial_sum = layer.cut == LinearCut::row;
  if (layer.bias && layer.cut != LinearCut::row) {  // added in the epilogue
    block_.read(op,
                block_.operand(layer.name + ".bias", Role::parameter, storage, {1, 1, layer.out}));
  }
}

void LinearBuilder::backward(const Linear& layer, OperandId input, OperandId output_gradient,
                             OperandId input_gradient) {
  const DType storage = storage_dtype(inputs_.plan.precision);
  const OperandId dy = quantised(layer, output_gradient, Role::temporary);
  const OperandId x = kept(layer, input);
  const OperandId weight =
      block_.operand(layer.name + ".weight", Role::parameter, storage, {1, layer.in, layer.out});
  Operation& op = block_.gemm(
      layer.name + ".dgrad", dy, weight, input_gradient,
      {.m = rows(layer), .n = layer.in, .k = layer.out, .transpose_b = true}, arithmetic(layer));
  // The gather of the saved input starts before this product, so that it hides behind it.
  if (layer.cut == LinearCut::column) op.full_sequence = {x};
  if (layer.cut == LinearCut::row) op.full_sequence = {dy};
  op.partial_sum = layer.cut == LinearCut::column;
  weight_gradient(layer, x, dy);
}

void LinearBuilder::weight_gradient(const Linear& layer, OperandId input,
                                    OperandId output_gradient) {
  const Software& software = inputs_.software;
  const DType sums = gradient_dtype(inputs_.plan, software);
  const std::array<std::int64_t, 3> shape{1, layer.in, layer.out};
  const OperandId gradient =
      block_.operand(layer.name + ".weight.grad", Role::gradient, sums, shape);
  const bool separate = software.accumulation == Accumulation::separate;
  const OperandId out = separate ? block_.operand(layer.name + ".weight.fresh", Role::temporary,
                                                  storage_dtype(inputs_.plan.precision), shape)
                                 : gradient;
  Operation& op = block_.gemm(layer.name + ".wgrad", input, output_gradient, out,
                              {.m = layer.in,
                               .n = layer.out,
                               .k = rows(layer),
                               .transpose_a = true,
                               .accumulate = !separate},
                              arithmetic(layer));
  if (layer.cut != LinearCut::whole) op.full_sequence = {input, output_gradient};
  if (layer.bias && layer.cut != LinearCut::row) {
    block_.write(
        op, block_.operand(layer.name + ".bias.grad", Role::gradient, sums, {1, 1, layer.out}));
  }
  if (separate) {
    Operation& sum =
        block_.add(OpKind::accumulate, layer.name + ".accumulate", {out, gradient}, {gradient});
    sum.dtype = sums;
  }
}

}  // namespace orrery::models
