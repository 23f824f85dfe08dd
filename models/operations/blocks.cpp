#include "models/operations/blocks.hpp"

#include "models/plan/precision_formats.hpp"

namespace orrery::models {

DType gradient_dtype(const Plan& plan, const Software& software) {
  if (plan.formats.precision == Precision::fp64) return DType::fp64;
  switch (plan.formats.gradient) {
    case GradientFormat::fp32:
      return DType::fp32;
    case GradientFormat::bf16:  // of a list of operations: 16 bits, as its weights
      return storage_dtype(plan.formats.precision) == DType::fp16 ? DType::fp16 : DType::bf16;
    default:
      return software.gradient_dtype_for(storage_dtype(plan.formats.precision));
  }
}

DType master_dtype(const Plan& plan) {
  return plan.formats.state == StatePrecision::pure ? storage_dtype(plan.formats.precision)
                                                    : state_dtype(plan.formats.precision);
}

bool has_norm_bias(const Model& model) {
  return model.norms.kind == Norm::layer_norm && model.norms.bias;
}

std::int64_t parameters_of(const Block& block) {
  return parameters_of(block, MeshView::dense) + parameters_of(block, MeshView::experts);
}

std::int64_t parameters_of(const Block& block, MeshView view) {
  std::int64_t sum = 0;
  for (const Operand& each : block.operands) {
    const bool counts = each.role == Role::parameter && !each.frozen && each.view == view;
    if (counts) sum += each.elements();
  }
  return sum;
}

Bytes frozen_bytes_of(const Block& block) {
  Bytes sum{};
  for (const Operand& each : block.operands) {
    if (each.role == Role::parameter && each.frozen) sum += each.bytes();
  }
  return sum;
}

}  // namespace orrery::models
