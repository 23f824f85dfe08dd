// Queries, keys and values by latent attention (MLA) with expanded keys and values, as training
// runs it. Queries come from one latent, keys and values from another; both latents are normalised,
// and their down-projections are whole on every rank. A part of each key is rotated and shared by
// all heads: its columns follow those of the key-value latent in the same tensor.
// Source  DeepSeek-AI 2024, arXiv 2405.04434, section 2.1; Megatron-Core,
//         multi_latent_attention.py

#include "models/operations/parts/latent.hpp"

#include <algorithm>

namespace orrery::models {

LatentQkv::Path LatentQkv::queries() const {
  return {"query", attention_.latents->query_rank, 0, attention_.query_columns(),
          attention_.head_dim};
}

LatentQkv::Path LatentQkv::keys_and_values() const {
  const std::int64_t of_head = attention_.expanded_columns();
  return {"key_value", attention_.latents->kv_rank, attention_.latents->rotary_dim,
          attention_.heads * of_head, of_head};
}

Linear LatentQkv::down(const Path& path) const {
  return linear_of(matrix_of(matrices_of(attention_, hidden()), path.name + "_down"), {});
}

Linear LatentQkv::up(const Path& path) const {
  return linear_of(matrix_of(matrices_of(attention_, hidden()), path.name + "_up"),
                   by_columns(path.head_unit));
}

/// Columns of all heads.
OperandId LatentQkv::up_columns(const Path& path, std::string_view name) {
  return features(path.name + std::string{name}, Role::temporary, path.columns,
                  by_columns(path.head_unit));
}

ModelTensor LatentQkv::latent_norm(const Path& path) const {
  return {.name = path.name + "_norm.weight",
          .uncut = {1, 1, path.rank},
          .initial = {Initial::Kind::ones}};
}

void LatentQkv::latent_forward(const Path& path, OperandId in) {
  const OperandId heads = up_columns(path, "_up.out");
  if (path.rank == 0) return expand(path, in, heads);
  const std::int64_t width = path.rank + path.plain;
  const Sharding layout = rows_layout(inputs_.plan);
  const OperandId latent = features(path.name + "_down.out", Role::saved, width, layout);
  const OperandId normed = features(path.name + "_norm.out", Role::saved, width, layout);
  linear_.forward(down(path), in, latent);
  Operation& norm = block_.add(OpKind::norm, path.name + "_norm",
                               {latent, parameter(latent_norm(path))}, {normed});
  norm.mutable_norm() = inputs_.model.norms.kind;
  norm.mutable_epsilon() = attention_.latents->epsilon;
  if (unfused_norms()) save_besides(norm, unfused_norm(path.name + "_norm", latent));
  expand(path, normed, heads);
}

/// Up-projection to heads, marked for recomputation by module.
/// Source  Megatron-Core, multi_latent_attention.py: mla_up_proj recomputes
///         qkv_up_proj_and_rope_apply
void LatentQkv::expand(const Path& path, OperandId from, OperandId heads) {
  const std::size_t first = block_.size();
  linear_.forward(up(path), from, heads);
  for (Operation& each : block_.since(first)) each.module.latent_up = true;
}

void LatentQkv::latent_backward(const Path& path, OperandId saved_in, OperandId gradient_in) {
  const OperandId d_heads = up_columns(path, "_up.out.grad");
  if (path.rank == 0) return linear_.backward(up(path), saved_in, d_heads, gradient_in);
  const std::int64_t width = path.rank + path.plain;
  const Sharding layout = rows_layout(inputs_.plan);
  const OperandId latent = features(path.name + "_down.out", Role::saved, width, layout);
  const OperandId normed = features(path.name + "_norm.out", Role::saved, width, layout);
  const OperandId d_normed = features(path.name + "_norm.out.grad", Role::temporary, width, layout);
  const OperandId d_latent = features(path.name + "_down.out.grad", Role::temporary, width, layout);
  const std::size_t first = block_.size();
  linear_.backward(up(path), normed, d_heads, d_normed);
  if (path.plain > 0) join_shared_gradient(first, normed);
  const ModelTensor weight = latent_norm(path);
  const OperandId of = parameter(weight), weight_gradient = gradient(weight, d_normed);
  Operation& op = block_.add(OpKind::norm_backward, path.name + "_norm.backward",
                             {d_normed, latent, of}, {d_latent, weight_gradient});
  op.dtype = storage_;
  op.mutable_norm() = inputs_.model.norms.kind;
  op.mutable_epsilon() = attention_.latents->epsilon;
  if (unfused_norms()) read_besides(op, unfused_norm(path.name + "_norm", latent));
  linear_.backward(down(path), saved_in, d_latent, gradient_in);
}

OperandId LatentQkv::shared_key_gradient() {
  return features("key_value_shared.grad", Role::temporary, attention_.latents->rotary_dim, {});
}

/// Adds the gradient of the keys' shared part to the GEMM that computes the gradient of the
/// normalised latent (the first that does not read the saved `normed`): the result has both in the
/// same rows, so that one collective over the tensor ranks sums both.
void LatentQkv::join_shared_gradient(std::size_t first, OperandId normed) {
  for (Operation& op : block_.since(first)) {
    const auto reads = std::ranges::find(op.reads, normed);
    if (op.kind != OpKind::gemm || reads != op.reads.end()) continue;
    op.reads.push_back(shared_key_gradient());
    return;
  }
}

/// Marks the operation that joins the keys' shared part to the heads as the one that rotates. Its
/// traffic leaves out that part, read once for all heads, next to what is written for each head.
void LatentQkv::rotates(Operation& op) const {
  op.mutable_heads() = head_columns();
  op.mutable_frequencies() =
      rotary_frequencies(inputs_.model.embedding.rotary, attention_.latents->rotary_dim);
  op.mutable_magnitude() = inputs_.model.embedding.rotary.magnitude;
}

void LatentQkv::forward(OperandId in, OperandId out) {
  latent_forward(queries(), in);
  latent_forward(keys_and_values(), in);
  Operation& join = block_.add(OpKind::cast, "heads.join", {}, {out});
  join.module.latent_up = true;
  for (const Path& path : {queries(), keys_and_values()}) {
    block_.read(join, up_columns(path, "_up.out"));
  }
  const Bytes counted = join.bytes;
  const OperandId shared = features("key_value_norm.out", Role::saved,
                                    attention_.latents->kv_rank + attention_.latents->rotary_dim,
                                    rows_layout(inputs_.plan));
  block_.read(join, shared);
  Sharding whole = block_.at(shared).sharding;
  whole.cut(MeshAxis::tensor).reset();
  block_.need(join, shared, whole);
  join.bytes = counted;
  rotates(join);
}

void LatentQkv::backward(OperandId saved_in, OperandId gradient, OperandId gradient_in) {
  Operation& split = block_.add(OpKind::cast, "heads.split", {gradient}, {});
  split.dtype = storage_;
  for (const Path& path : {queries(), keys_and_values()}) {
    block_.write(split, up_columns(path, "_up.out.grad"));
  }
  split.writes.push_back(shared_key_gradient());
  rotates(split);
  const OperandId of_queries = rows("query.in.grad", Role::temporary);
  const OperandId of_keys = rows("key_value.in.grad", Role::temporary);
  latent_backward(queries(), saved_in, of_queries);
  latent_backward(keys_and_values(), saved_in, of_keys);
  block_.add(OpKind::add, "latents.add", {of_queries, of_keys}, {gradient_in});
}

}  // namespace orrery::models
