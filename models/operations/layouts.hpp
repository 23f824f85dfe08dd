#pragma once
// How tensor and sequence parallelism cut a transformer's tensors. This is all that they are: the
// products' needs follow (linear.hpp), and the collectives from those (lowering/reshard.hpp).
//   heads, MLP, vocabulary  tensor cuts the weight that makes them by columns and the one that
//                           consumes them by rows, and activations between the two by columns
//   everything else         every rank has it whole, or its rows where sequence parallelism cuts
//                           them
// Source  Shoeybi et al. 2019, Megatron-LM, arXiv 1909.08053; Korthikanti et al. 2022, arXiv
//         2205.05198

#include "models/model/model.hpp"
#include "models/plan/plan.hpp"
#include "models/program/sharding.hpp"

namespace orrery::models {

/// Shards of the vocabulary are multiples of it.
/// Source  make-vocab-size-divisible-by of Megatron-LM
inline constexpr std::int64_t vocabulary_unit = 128;

inline Mesh mesh_of(const Plan& plan) {
  return {plan.tensor, plan.data, plan.pipeline};
}

/// [T, h] between layers.
inline Sharding rows_layout(const Plan& plan) {
  if (!plan.sequence_parallel) return {};
  return {MeshAxis::tensor, Dimension::rows};
}

inline Sharding by_columns(std::int64_t unit = 1) {
  return {MeshAxis::tensor, Dimension::columns, unit};
}
inline Sharding by_rows(std::int64_t unit = 1) {
  return {MeshAxis::tensor, Dimension::rows, unit};
}

/// Columns of queries, keys and values, by whole heads.
inline Sharding heads_layout(const Model& model) {
  Sharding layout = by_columns(model.head_dim);
  const std::int64_t d = model.head_dim;
  layout.column_groups = {model.heads * d, model.kv_heads * d, model.kv_heads * d};
  return layout;
}

/// Columns of the MLP: gate and up where it is gated.
inline Sharding mlp_layout(const Model& model) {
  Sharding layout = by_columns();
  if (model.gated_mlp) layout.column_groups = {model.ffn_hidden, model.ffn_hidden, 0};
  return layout;
}

}  // namespace orrery::models
