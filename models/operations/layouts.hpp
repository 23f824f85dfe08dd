#pragma once
// How tensor, sequence, context and expert parallelism cut a transformer's tensors. Nothing else
// defines them: the layouts that GEMMs need follow from these (linear.hpp), and the collectives
// from the differences (lowering/reshard.hpp).
//   heads, MLP, vocabulary  tensor parallelism cuts the weight that produces them by columns, the
//                           one that consumes them by rows, and activations between by columns
//   everything else         whole on every rank, or cut by rows under sequence parallelism
// Context parallelism cuts every tensor that has a row for each token by rows; attention is in
// operations/parts/context.cpp.
// Source  Shoeybi et al. 2019, Megatron-LM, arXiv 1909.08053; Korthikanti et al. 2022, arXiv
//         2205.05198

#include <numeric>

#include "models/model/model.hpp"
#include "models/plan/derived.hpp"
#include "models/plan/plan.hpp"
#include "models/program/sharding.hpp"

namespace orrery::models {

/// Shards of the vocabulary are whole multiples of this many rows, the last ones padded.
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
  return dense.with_experts(plan.experts.ranks, expert_tensor_of(plan));
}

/// Adds the cut over context ranks to a layout whose `dimension` counts tokens.
inline Sharding of_tokens(Sharding layout, Dimension dimension = Dimension::rows) {
  for (const MeshAxis axis : {MeshAxis::context_heads, MeshAxis::context}) {
    layout.cut(axis) = Cut{dimension};
  }
  return layout;
}

/// The same inside attention: context ranks that exchange tokens for heads (Ulysses) have all
/// tokens of their group and a share of the columns, in multiples of `unit`.
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

/// Columns of queries (and the output's gate), keys and values, each cut by whole heads.
inline Sharding heads_layout(const AttentionPart& attention) {
  Sharding layout = by_columns(std::gcd(attention.head_dim, attention.value_width()));
  layout.column_groups = {attention.query_columns() * (attention.gated ? 2 : 1),
                          attention.key_columns(), attention.value_columns()};
  return layout;
}

/// Output columns of an MLP's first GEMM; a gated MLP's gate and up halves are cut alike.
inline Sharding mlp_layout(const MlpPart& mlp) {
  Sharding layout = by_columns();
  if (mlp.gated) layout.column_groups = {mlp.width, mlp.width, 0};
  return layout;
}

/// Rows of experts where they are computed: each rank has some experts and all of their rows.
inline Sharding at_experts() {
  return {MeshAxis::expert, Dimension::matrices};
}
/// Rows of experts where their tokens live: each rank has some rows of every expert.
inline Sharding at_senders() {
  Sharding layout{MeshAxis::expert, Dimension::rows};
  layout.cut(MeshAxis::expert_tensor) = Cut{Dimension::rows};
  return layout;
}
/// Columns cut over the ranks that share an expert (expert tensor parallelism).
inline Sharding expert_columns() {
  Sharding layout = at_experts();
  layout.cut(MeshAxis::expert_tensor) = Cut{Dimension::columns};
  return layout;
}
/// Outputs of which the ranks that share an expert hold partial sums.
inline Sharding expert_sums() {
  Sharding layout = at_experts();
  layout.partial = MeshAxis::expert_tensor;
  return layout;
}

}  // namespace orrery::models
