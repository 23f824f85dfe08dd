#pragma once
// How tensor and sequence parallelism cut a transformer's tensors. This is all that they are: the
// products' needs follow (linear.hpp), and the collectives from those (lowering/reshard.hpp).
//   heads, MLP, vocabulary  tensor cuts the weight that makes them by columns and the one that
//                           consumes them by rows, and activations between the two by columns
//   everything else         every rank has it whole, or its rows where sequence parallelism cuts
//                           them
// Context parallelism cuts the rows of all that has a row for each token, outside attention
// (operations/context.cpp).
// Source  Shoeybi et al. 2019, Megatron-LM, arXiv 1909.08053; Korthikanti et al. 2022, arXiv
//         2205.05198

#include <numeric>

#include "models/model/model.hpp"
#include "models/plan/derived.hpp"
#include "models/plan/plan.hpp"
#include "models/program/sharding.hpp"

namespace orrery::models {

/// Shards of the vocabulary are multiples of it.
/// Source  make-vocab-size-divisible-by of Megatron-LM
inline constexpr std::int64_t vocabulary_unit = 128;

inline Mesh mesh_of(const Plan& plan) {
  const auto [heads, pieces] = context_split(plan);
  const Mesh dense{Mesh::Degrees{.tensor = plan.tensor,
                                 .context_heads = heads,
                                 .context = pieces,
                                 .data = plan.data_shards(),
                                 .replica = plan.data / plan.data_shards(),
                                 .pipeline = plan.pipeline}};
  return dense.with_experts(plan.expert, expert_tensor_of(plan));
}

/// The same of tensors whose `dimension` are tokens: each context rank has its part of them.
inline Sharding of_tokens(Sharding layout, Dimension dimension = Dimension::rows) {
  for (const MeshAxis axis : {MeshAxis::context_heads, MeshAxis::context}) {
    layout.cut(axis) = Cut{dimension};
  }
  return layout;
}

/// The same in attention, where context ranks that trade tokens for heads have all tokens of the
/// ranks that they trade with, and a share of these columns.
inline Sharding of_heads(Sharding layout, Dimension tokens, Dimension heads, std::int64_t unit) {
  layout.cut(MeshAxis::context) = Cut{tokens};
  layout.cut(MeshAxis::context_heads) = Cut{heads, static_cast<std::uint16_t>(unit)};
  return layout;
}

/// [T, h] between layers.
inline Sharding rows_layout(const Plan& plan) {
  if (!plan.sequence_parallel) return of_tokens({});
  return of_tokens({MeshAxis::tensor, Dimension::rows});
}

inline Sharding by_columns(std::int64_t unit = 1) {
  return {MeshAxis::tensor, Dimension::columns, unit};
}
inline Sharding by_rows(std::int64_t unit = 1) {
  return {MeshAxis::tensor, Dimension::rows, unit};
}

/// Width of a head's value.
inline std::int64_t value_width(const Model& model) {
  return model.value_dim > 0 ? model.value_dim : model.head_dim;
}

/// Columns of queries, keys and values, by whole heads.
inline Sharding heads_layout(const Model& model) {
  const std::int64_t d = model.head_dim, v = value_width(model);
  Sharding layout = by_columns(std::gcd(d, v));
  layout.column_groups = {model.heads * d, model.kv_heads * d, model.kv_heads * v};
  return layout;
}

/// Columns of an MLP of this width: gate and up where it is gated.
inline Sharding mlp_layout(const Model& model, std::int64_t width) {
  Sharding layout = by_columns();
  if (model.gated_mlp) layout.column_groups = {width, width, 0};
  return layout;
}

/// Rows of experts as their ranks compute them: each rank has some of the experts and all their
/// rows; and as the ranks that send them have them: each has some rows of all experts.
inline Sharding at_experts() {
  return {MeshAxis::expert, Dimension::matrices};
}
inline Sharding at_senders() {
  Sharding layout{MeshAxis::expert, Dimension::rows};
  layout.cut(MeshAxis::expert_tensor) = Cut{Dimension::rows};
  return layout;
}
/// Columns that each expert's ranks cut, and what they leave as partial sums.
inline Sharding expert_columns() {
  Sharding layout = at_experts();
  layout.cut(MeshAxis::expert_tensor) = Cut{Dimension::columns};
  return layout;
}
inline Sharding expert_sums() {
  Sharding layout = at_experts();
  layout.partial = MeshAxis::expert_tensor;
  return layout;
}

}  // namespace orrery::models
