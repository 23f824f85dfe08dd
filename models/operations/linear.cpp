#include "models/operations/linear.hpp"

#include <algorithm>

namespace orrery::models {

namespace {

ModelTensor weight_of(const Linear& layer, const Model& model) {
  return {.name = layer.name + ".weight",
          .uncut = {std::max<std::int64_t>(1, layer.experts), layer.in, layer.out},
          .sharding = layer.sharding,
          .initial = {.deviation = model.initial_deviation},
          .tied_to = layer.tied_to,
          .transposed = layer.stored_transposed,
          .view = layer.experts > 0 ? MeshView::experts : MeshView::dense};
}

ModelTensor bias_of(const Linear& layer) {
  return {.name = layer.name + ".bias",
          .uncut = {std::max<std::int64_t>(1, layer.experts), 1, layer.out},
          .sharding = layer.sharding,
          .initial = {Initial::Kind::zeros},
          .view = layer.experts > 0 ? MeshView::experts : MeshView::dense};
}

/// Is the bias added in the product's epilogue? Partial sums leave it to what adds the residual;
/// of an expert's ranks the first adds it.
bool adds_bias(const Linear& layer) {
  return layer.bias && (layer.experts > 0 || layer.sharding.axes(Dimension::rows).empty());
}

/// How a product reads [rows, columns] where the columns are the weight's `dimension`.
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

/// How a product leaves [rows, columns] where the columns are the weight's `dimension`, and sums
/// over its other one.
Sharding written_by(const Sharding& held, const Sharding& weight, Dimension dimension) {
  Sharding made = read_by(held, weight, dimension);
  const Dimension summed = dimension == Dimension::rows ? Dimension::columns : Dimension::rows;
  made.partial = weight.axes(summed);
  return made;
}

}  // namespace

DType LinearBuilder::arithmetic(const Linear& layer) const {
  const DType plan = compute_dtype(inputs_.plan.precision);
  return plan == DType::fp8 && !layer.low_precision ? DType::bf16 : plan;
}

/// The 8-bit copy that a product reads in fp8; the tensor itself in other formats. What two layers
/// read is quantised once, and a shard of the sequence before it is gathered.
OperandId LinearBuilder::quantised(const Linear& layer, OperandId source, Role role) {
  if (arithmetic(layer) != DType::fp8) return source;
  const Operand& original = block_.at(source);
  const std::string name = original.name + ".fp8";
  if (const auto known = block_.find(name)) return *known;
  const OperandId copy = block_.operand(name, role, DType::fp8, original.uncut, original.sharding);
  block_.add(OpKind::quantise, name, {source}, {copy});
  return copy;
}

/// What forward kept of its input: the copy that it multiplied.
OperandId LinearBuilder::kept(const Linear& layer, OperandId input) {
  if (arithmetic(layer) != DType::fp8) return input;
  const Operand& original = block_.at(input);
  return block_.operand(original.name + ".fp8", Role::saved, DType::fp8, original.uncut,
                        original.sharding);
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
  const OperandId x = quantised(layer, input, Role::saved);
  const OperandId weight = block_.parameter(weight_of(layer, inputs_.model), storage());
  const Sharding reads = read_by(block_.at(x).sharding, layer.sharding, Dimension::rows);
  const Shape& w = block_.at(weight).shape;
  Operation& op =
      product(layer, "", x, weight, output, {.m = block_.shape(x, reads)[1], .n = w[2], .k = w[1]});
  block_.need(op, x, reads);
  block_.make(op, output,
              written_by(block_.at(output).sharding, layer.sharding, Dimension::columns));
  if (adds_bias(layer)) block_.read(op, block_.parameter(bias_of(layer), storage()));
}

void LinearBuilder::backward(const Linear& layer, OperandId input, OperandId output_gradient,
                             OperandId input_gradient) {
  const OperandId dy = quantised(layer, output_gradient, Role::temporary);
  const OperandId x = kept(layer, input);
  const OperandId weight = block_.parameter(weight_of(layer, inputs_.model), storage());
  const Sharding reads = read_by(block_.at(dy).sharding, layer.sharding, Dimension::columns);
  const Shape& w = block_.at(weight).shape;
  Operation& op =
      product(layer, ".dgrad", dy, weight, input_gradient,
              {.m = block_.shape(dy, reads)[1], .n = w[1], .k = w[2], .transpose_b = true});
  // The weight gradient's input is fetched before this product, so that the gather overlaps it.
  block_.need(op, x, read_by(block_.at(x).sharding, layer.sharding, Dimension::rows));
  block_.need(op, dy, reads);
  block_.make(op, input_gradient,
              written_by(block_.at(input_gradient).sharding, layer.sharding, Dimension::rows));
  weight_gradient(layer, x, dy);
}

/// Ranks that read other rows hold partial sums of it.
void LinearBuilder::weight_gradient(const Linear& layer, OperandId x, OperandId dy) {
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
  if (adds_bias(layer)) block_.write(op, block_.gradient(bias_of(layer), sums, partial));
  if (separate) {
    block_.add(OpKind::accumulate, layer.name + ".accumulate", {out, gradient}, {gradient}).dtype =
        sums;
  }
}

}  // namespace orrery::models
