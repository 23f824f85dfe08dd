#include <algorithm>

#include "models/operations/blocks.hpp"

namespace orrery::models {

std::int64_t padded_vocab(const Model& model, std::int64_t tensor) {
  const std::int64_t multiple = tensor > 1 ? 128 * tensor : 1;
  return (model.vocab + multiple - 1) / multiple * multiple;
}

DType gradient_dtype(const Plan& plan, const Software& software) {
  return plan.precision == Precision::fp64
             ? DType::fp64
             : software.gradient_beside(storage_dtype(plan.precision));
}

bool has_norm_bias(const Model& model) {
  return model.norm == Norm::layer_norm && model.norm_bias;
}

Shares::Shares(const BlockInputs& inputs) {
  const Model& model = inputs.model;
  const Plan& plan = inputs.plan;
  sequences = plan.micro_batch;
  seq = plan.seq_len;
  tokens = sequences * seq;
  rows = plan.sequence_parallel ? tokens / plan.tensor : tokens;
  hidden = model.hidden;
  embedding = embedding_width(model);
  heads = model.heads / plan.tensor;
  kv_heads = std::max<std::int64_t>(model.kv_heads / plan.tensor, 1);
  head_dim = model.head_dim;
  query = heads * head_dim;
  key_value = kv_heads * head_dim;
  ffn = model.ffn_hidden / plan.tensor;
  vocab = padded_vocab(model, plan.tensor) / plan.tensor;
}

std::int64_t parameters_of(const Block& block) {
  std::int64_t sum = 0;
  for (const Operand& each : block.operands) {
    if (each.role == Role::parameter) sum += each.elements();
  }
  return sum;
}

}  // namespace orrery::models
