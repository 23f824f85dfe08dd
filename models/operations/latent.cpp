// Queries, keys and values of a layer: one GEMM on the normalised input, or latent attention (MLA)
// with expanded keys and values, as training runs it. Queries come from one latent, keys and values
// from another; both latents are normalised, and their down-projections are whole on every rank. A
// part of each key is rotated and shared by all heads: its columns follow those of the key-value
// latent in the same tensor.
// Source  DeepSeek-AI 2024, arXiv 2405.04434, section 2.1; Megatron-Core,
//         multi_latent_attention.py

#include <algorithm>

#include "models/operations/layer.hpp"

namespace orrery::models {

/// Down-projection to a latent, a norm, and up-projection to heads; one GEMM where rank is 0.
struct LayerBuilder::LatentPart {
  std::string name;            // "query", "key_value"
  std::int64_t rank = 0;       // columns of the latent that are normalised
  std::int64_t plain = 0;      // columns after those that are not: the rotated part of keys
  std::int64_t columns = 0;    // output columns of all heads
  std::int64_t head_unit = 1;  // output columns of one head

  Linear down(std::int64_t hidden) const {
    return {.name = name + "_down", .in = hidden, .out = rank + plain, .target = LoraTarget::qkv};
  }
  Linear up(std::int64_t hidden) const {
    return {.name = name + "_up",
            .in = rank > 0 ? rank : hidden,
            .out = columns,
            .sharding = by_columns(head_unit),
            .target = LoraTarget::qkv};
  }
};

std::vector<LayerBuilder::LatentPart> LayerBuilder::latent_parts() const {
  const Model& m = inputs_.model;
  const std::int64_t of_keys = m.attention.head_dim - m.latent.rotary_dim + value_width(m);
  return {
      {"query", m.latent.query_rank, 0, m.attention.heads * m.attention.head_dim,
       m.attention.head_dim},
      {"key_value", m.latent.kv_rank, m.latent.rotary_dim, m.attention.heads * of_keys, of_keys}};
}

ModelTensor LayerBuilder::latent_norm(const LatentPart& part) const {
  return {.name = part.name + "_norm.weight",
          .uncut = {1, 1, part.rank},
          .initial = {Initial::Kind::ones}};
}

void LayerBuilder::latent_forward(const LatentPart& part, OperandId in) {
  const std::int64_t h = inputs_.model.hidden;
  const OperandId heads =
      features(part.name + "_up.out", Role::temporary, part.columns, by_columns(part.head_unit));
  if (part.rank == 0) return expand(part, in, heads);
  const std::int64_t width = part.rank + part.plain;
  const Sharding layout = rows_layout(inputs_.plan);
  const OperandId latent = features(part.name + "_down.out", Role::saved, width, layout);
  const OperandId normed = features(part.name + "_norm.out", Role::saved, width, layout);
  linear_.forward(part.down(h), in, latent);
  Operation& norm = block_.add(OpKind::norm, part.name + "_norm",
                               {latent, parameter(latent_norm(part))}, {normed});
  norm.mutable_norm() = inputs_.model.norms.kind;
  norm.mutable_epsilon() = inputs_.model.latent.epsilon;
  expand(part, normed, heads);
}

/// Up-projection to heads, marked for recomputation by module.
/// Source  Megatron-Core, multi_latent_attention.py: mla_up_proj recomputes
///         qkv_up_proj_and_rope_apply
void LayerBuilder::expand(const LatentPart& part, OperandId from, OperandId heads) {
  const std::size_t first = block_.size();
  linear_.forward(part.up(inputs_.model.hidden), from, heads);
  for (Operation& each : block_.since(first)) each.module.latent_up = true;
}

void LayerBuilder::latent_backward(const LatentPart& part, OperandId saved_in,
                                   OperandId gradient_in) {
  const std::int64_t h = inputs_.model.hidden;
  const OperandId d_heads = features(part.name + "_up.out.grad", Role::temporary, part.columns,
                                     by_columns(part.head_unit));
  if (part.rank == 0) return linear_.backward(part.up(h), saved_in, d_heads, gradient_in);
  const std::int64_t width = part.rank + part.plain;
  const Sharding layout = rows_layout(inputs_.plan);
  const OperandId latent = features(part.name + "_down.out", Role::saved, width, layout);
  const OperandId normed = features(part.name + "_norm.out", Role::saved, width, layout);
  const OperandId d_normed = features(part.name + "_norm.out.grad", Role::temporary, width, layout);
  const OperandId d_latent = features(part.name + "_down.out.grad", Role::temporary, width, layout);
  const std::size_t first = block_.size();
  linear_.backward(part.up(h), normed, d_heads, d_normed);
  if (part.plain > 0) join_shared_gradient(first, normed);
  const ModelTensor weight = latent_norm(part);
  const OperandId of = parameter(weight), weight_gradient = gradient(weight, d_normed);
  Operation& op = block_.add(OpKind::norm_backward, part.name + "_norm.backward",
                             {d_normed, latent, of}, {d_latent, weight_gradient});
  op.dtype = storage_;
  op.mutable_norm() = inputs_.model.norms.kind;
  op.mutable_epsilon() = inputs_.model.latent.epsilon;
  linear_.backward(part.down(h), saved_in, d_latent, gradient_in);
}

OperandId LayerBuilder::shared_key_gradient() {
  return features("key_value_shared.grad", Role::temporary, inputs_.model.latent.rotary_dim, {});
}

/// Adds the gradient of the keys' shared part to the GEMM that computes the gradient of the
/// normalised latent (the first that does not read the saved `normed`): the result has both in the
/// same rows, so that one collective over the tensor ranks sums both.
void LayerBuilder::join_shared_gradient(std::size_t first, OperandId normed) {
  for (Operation& op : block_.since(first)) {
    const auto reads = std::ranges::find(op.reads, normed);
    if (op.kind != OpKind::gemm || reads != op.reads.end()) continue;
    op.reads.push_back(shared_key_gradient());
    return;
  }
}

/// Marks the operation that joins the keys' shared part to the heads as the one that rotates. Its
/// traffic leaves out that part, read once for all heads, next to what is written for each head.
void LayerBuilder::rotates(Operation& op) const {
  op.mutable_heads() = head_columns();
  op.mutable_frequencies() =
      rotary_frequencies(inputs_.model.embedding.rotary, inputs_.model.latent.rotary_dim);
  op.mutable_magnitude() = inputs_.model.embedding.rotary.magnitude;
}

void LayerBuilder::qkv_forward(OperandId in) {
  const OperandId out = qkv_columns("qkv.out", Role::saved);
  if (inputs_.model.latent.kv_rank == 0) return linear_.forward(qkv(), in, out);
  const std::vector<LatentPart> parts = latent_parts();
  for (const LatentPart& part : parts) latent_forward(part, in);
  Operation& join = block_.add(OpKind::cast, "heads.join", {}, {out});
  join.module.latent_up = true;
  for (const LatentPart& part : parts) {
    block_.read(join, features(part.name + "_up.out", Role::temporary, part.columns,
                               by_columns(part.head_unit)));
  }
  const Bytes counted = join.bytes;
  const Model& m = inputs_.model;
  const OperandId shared =
      features("key_value_norm.out", Role::saved, m.latent.kv_rank + m.latent.rotary_dim,
               rows_layout(inputs_.plan));
  block_.read(join, shared);
  Sharding whole = block_.at(shared).sharding;
  whole.cut(MeshAxis::tensor).reset();
  block_.need(join, shared, whole);
  join.bytes = counted;
  rotates(join);
}

void LayerBuilder::qkv_backward(OperandId saved_in, OperandId gradient, OperandId gradient_in) {
  if (inputs_.model.latent.kv_rank == 0)
    return linear_.backward(qkv(), saved_in, gradient, gradient_in);
  const std::vector<LatentPart> parts = latent_parts();
  Operation& split = block_.add(OpKind::cast, "heads.split", {gradient}, {});
  split.dtype = storage_;
  for (const LatentPart& part : parts) {
    block_.write(split, features(part.name + "_up.out.grad", Role::temporary, part.columns,
                                 by_columns(part.head_unit)));
  }
  split.writes.push_back(shared_key_gradient());
  rotates(split);
  const OperandId of_queries = rows("query.in.grad", Role::temporary);
  const OperandId of_keys = rows("key_value.in.grad", Role::temporary);
  latent_backward(parts[0], saved_in, of_queries);
  latent_backward(parts[1], saved_in, of_keys);
  block_.add(OpKind::add, "latents.add", {of_queries, of_keys}, {gradient_in});
}

}  // namespace orrery::models
