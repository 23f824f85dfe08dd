#include "models/model/layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/errors.hpp"

namespace orrery::models {

void Tally::add(const LayerMatrix& each) {
  const std::int64_t product = each.in * each.out, all = product + (each.bias ? each.out : 0);
  add({each.copies * all, each.met * all, each.met * product});
}

void Tally::add(const Tally& other, std::int64_t times) {
  total += times * other.total;
  touched += times * other.touched;
  gemm += times * other.gemm;
}

std::int64_t adapter_columns(const LayerMatrix& matrix, const WordSet<LoraTarget>& targets) {
  if (!matrix.target) return 0;
  if (targets.has(*matrix.target)) return matrix.in + matrix.out;
  std::int64_t sum = 0;
  for (const MatrixPart& each : matrix.parts) {
    if (targets.has(each.target)) sum += matrix.in + each.columns;
  }
  return sum;
}

CrossAttentionPart cross_of(const AttentionPart& attention) {
  return {.heads = attention.heads,
          .kv_heads = attention.kv_heads,
          .head_dim = attention.head_dim,
          .qkv_bias = attention.qkv_bias,
          .output_bias = attention.output_bias};
}

MlpPart ExpertsPart::shared() const {
  MlpPart all = mlp;
  all.width = shared_width;
  return all;
}

const MlpPart* Layer::mlp() const {
  if (const ExpertsPart* const of = experts()) return &of->mlp;
  return std::get_if<MlpPart>(&channel);
}

int Layer::parts() const {
  return (std::holds_alternative<NoPart>(mixer) ? 0 : 1) + (cross ? 1 : 0) +
         (std::holds_alternative<NoPart>(channel) ? 0 : 1);
}

bool recurs(const Layer& layer) {
  return std::holds_alternative<Mamba2Part>(layer.mixer) ||
         std::holds_alternative<DeltaPart>(layer.mixer);
}

std::vector<LayerMatrix> matrices_of(const AttentionPart& attention, std::int64_t hidden) {
  const std::int64_t queries = attention.query_columns();
  std::vector<LayerMatrix> all;
  const auto of_qkv = [&](std::string name, std::int64_t in, std::int64_t out) {
    all.push_back({.name = std::move(name), .in = in, .out = out, .target = LoraTarget::qkv});
  };
  if (attention.latents) {
    const LatentAttention& of = *attention.latents;
    if (of.query_rank > 0) of_qkv("query_down", hidden, of.query_rank);
    of_qkv("query_up", of.query_rank > 0 ? of.query_rank : hidden, queries);
    of_qkv("key_value_down", hidden, of.kv_rank + of.rotary_dim);
    of_qkv("key_value_up", of.kv_rank, attention.heads * attention.expanded_columns());
    if (attention.indexer && !attention.indexer->shared) {
      const Indexer& index = *attention.indexer;
      const std::int64_t from = of.query_rank > 0 ? of.query_rank : hidden;
      all.push_back({.name = "index_query", .in = from, .out = index.heads * index.dim});
      all.push_back({.name = "index_key", .in = hidden, .out = index.dim});
      all.push_back({.name = "index_weight", .in = hidden, .out = index.heads});
    }
  } else {
    of_qkv(
        "qkv", hidden,
        queries * (attention.gated ? 2 : 1) + attention.key_columns() + attention.value_columns());
    all.back().bias = attention.qkv_bias;
    all.back().parts = {{LoraTarget::query, queries * (attention.gated ? 2 : 1)},
                        {LoraTarget::key, attention.key_columns()},
                        {LoraTarget::value, attention.value_columns()}};
  }
  all.push_back({.name = "projection",
                 .in = attention.heads * attention.value_width(),
                 .out = hidden,
                 .bias = attention.output_bias,
                 .target = LoraTarget::projection});
  return all;
}

std::vector<LayerMatrix> matrices_of(const CrossAttentionPart& cross, std::int64_t hidden) {
  const std::int64_t queries = cross.query_columns(), keys = cross.key_columns();
  return {{.name = "cross.query",
           .in = hidden,
           .out = queries,
           .bias = cross.qkv_bias,
           .target = LoraTarget::qkv,
           .parts = {{LoraTarget::query, queries}}},
          {.name = "cross.key_value",
           .in = hidden,
           .out = 2 * keys,
           .bias = cross.qkv_bias,
           .target = LoraTarget::qkv,
           .parts = {{LoraTarget::key, keys}, {LoraTarget::value, keys}},
           .of_source = true},
          {.name = "cross.projection",
           .in = queries,
           .out = hidden,
           .bias = cross.output_bias,
           .target = LoraTarget::projection}};
}

std::vector<LayerMatrix> matrices_of(const Mamba2Part& mamba, std::int64_t hidden) {
  return {
      {.name = "mixer.in",
       .in = hidden,
       .out = mamba.inner() + mamba.convolved() + mamba.heads,
       .target = LoraTarget::qkv},
      {.name = "mixer.out", .in = mamba.inner(), .out = hidden, .target = LoraTarget::projection}};
}

std::vector<LayerMatrix> matrices_of(const DeltaPart& delta, std::int64_t hidden) {
  const LayerMatrix out{
      .name = "mixer.out", .in = delta.values(), .out = hidden, .target = LoraTarget::projection};
  if (delta.gate_rank > 0) {
    std::vector<LayerMatrix> all{{.name = "mixer.in",
                                  .in = hidden,
                                  .out = delta.convolved() + delta.value_heads,
                                  .target = LoraTarget::qkv}};
    for (const std::string gate : {"mixer.decay", "mixer.gate"}) {
      all.push_back({.name = gate + "_down", .in = hidden, .out = delta.gate_rank});
      all.push_back({.name = gate + "_up", .in = delta.gate_rank, .out = delta.values()});
    }
    all.push_back(out);
    return all;
  }
  return {{.name = "mixer.in",
           .in = hidden,
           .out = delta.convolved() + delta.values() + 2 * delta.value_heads,
           .target = LoraTarget::qkv},
          out};
}

double selected_tokens(const Indexer& indexer, std::int64_t seq_len) {
  const auto s = static_cast<double>(seq_len), k = static_cast<double>(indexer.top);
  return seq_len > indexer.top ? k - k * (k - 1) / (2 * s) : (s + 1) / 2;
}

double index_flops(const Indexer& indexer, std::int64_t seq_len) {
  return static_cast<double>(indexer.heads * indexer.dim) * static_cast<double>(seq_len);
}

double selected_flops(const AttentionPart& attention, std::int64_t seq_len) {
  const LatentAttention& of = *attention.latents;
  const std::int64_t columns = attention.heads * (2 * of.kv_rank + of.rotary_dim);
  return 2 * selected_tokens(*attention.indexer, seq_len) * static_cast<double>(columns);
}

bool selects_faster(const AttentionPart& attention, std::int64_t seq_len) {
  if (!attention.indexer || seq_len <= attention.indexer->top) return false;
  const auto columns =
      static_cast<double>(attention.heads * (attention.head_dim + attention.value_width()));
  return selected_flops(attention, seq_len) < static_cast<double>(seq_len) * columns;
}

std::int64_t scan_flops(const Mamba2Part& mamba) {
  const std::int64_t sides = mamba.groups * mamba.state;
  return 2 * mamba.taps * mamba.convolved() + 2 * mamba.chunk * sides +
         mamba.chunk * mamba.inner() + 4 * mamba.state * mamba.inner();
}

std::int64_t scan_flops(const DeltaPart& delta) {
  const std::int64_t k = delta.key_dim, v = delta.value_dim;
  return 2 * delta.taps * delta.convolved() +
         delta.value_heads * (DeltaPart::chunk * (6 * k + 4 * v) + 6 * k * v);
}

std::vector<LayerMatrix> matrices_of(const MlpPart& mlp, std::int64_t hidden,
                                     const std::string& prefix) {
  std::vector<MatrixPart> parts;
  if (mlp.gated) parts.push_back({LoraTarget::gate_part, mlp.width});
  parts.push_back({LoraTarget::up_part, mlp.width});
  return {{.name = prefix + "up",
           .in = hidden,
           .out = mlp.width * (mlp.gated ? 2 : 1),
           .bias = mlp.bias,
           .target = LoraTarget::up,
           .parts = std::move(parts)},
          {.name = prefix + "down",
           .in = mlp.width,
           .out = hidden,
           .bias = mlp.bias,
           .target = LoraTarget::down}};
}

std::vector<LayerMatrix> matrices_of(const ExpertsPart& experts, std::int64_t hidden) {
  std::vector<LayerMatrix> all{{.name = "router", .in = hidden, .out = experts.count}};
  const std::int64_t width = experts.narrow > 0 ? experts.narrow : hidden;
  if (experts.narrow > 0) {
    all.push_back({.name = "experts.narrow", .in = hidden, .out = width});
    all.push_back({.name = "experts.widen", .in = width, .out = hidden});
  }
  for (LayerMatrix each : matrices_of(experts.mlp, width, "experts.")) {
    each.copies = experts.count;
    each.met = experts.per_token;
    all.push_back(std::move(each));
  }
  if (experts.shared_width == 0) return all;
  if (experts.shared_gate) all.push_back({.name = "shared.gate", .in = hidden, .out = 1});
  for (LayerMatrix& each : matrices_of(experts.shared(), hidden, "shared.")) {
    all.push_back(std::move(each));
  }
  return all;
}

std::vector<LayerMatrix> matrices_of(const Layer& layer, std::int64_t hidden) {
  std::vector<LayerMatrix> all;
  const auto add = [&](std::vector<LayerMatrix> more) {
    std::ranges::move(more, std::back_inserter(all));
  };
  if (const AttentionPart* const mixer = layer.attention()) add(matrices_of(*mixer, hidden));
  if (const auto* const mixer = std::get_if<Mamba2Part>(&layer.mixer)) {
    add(matrices_of(*mixer, hidden));
  }
  if (const auto* const mixer = std::get_if<DeltaPart>(&layer.mixer)) {
    add(matrices_of(*mixer, hidden));
  }
  if (layer.cross) add(matrices_of(*layer.cross, hidden));
  if (const ExpertsPart* const experts = layer.experts()) {
    add(matrices_of(*experts, hidden));
  } else if (const MlpPart* const mlp = layer.mlp()) {
    add(matrices_of(*mlp, hidden, ""));
  }
  return all;
}

LayerMatrix matrix_of(const std::vector<LayerMatrix>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &LayerMatrix::name);
  ensure(found != all.end(), "a part has no such matrix");
  return *found;
}

std::vector<PartCut> cuts_of(const Layer& layer) {
  std::vector<PartCut> cuts;
  const auto width = [&](std::int64_t of) {
    cuts.push_back({fmt::format("MLP width {}", of), of});
  };
  if (const AttentionPart* const own = layer.attention()) {
    cuts.push_back({fmt::format("{} attention heads", own->heads), own->heads});
    cuts.push_back({fmt::format("{} key-value heads", own->kv_heads), own->kv_heads, true});
  }
  if (layer.cross) {
    cuts.push_back(
        {fmt::format("{} cross-attention heads", layer.cross->heads), layer.cross->heads});
    cuts.push_back({fmt::format("{} key-value heads of cross-attention", layer.cross->kv_heads),
                    layer.cross->kv_heads, true});
  }
  if (const auto* const own = std::get_if<Mamba2Part>(&layer.mixer)) {
    cuts.push_back({fmt::format("{} Mamba-2 heads", own->heads), own->heads});
    cuts.push_back({fmt::format("{} groups of Mamba-2 heads", own->groups), own->groups});
  }
  if (const auto* const own = std::get_if<DeltaPart>(&layer.mixer)) {
    cuts.push_back({fmt::format("{} key heads of the delta rule", own->key_heads), own->key_heads});
  }
  if (const ExpertsPart* const experts = layer.experts()) {
    if (experts->shared_width > 0) width(experts->shared_width);
  } else if (const MlpPart* const mlp = layer.mlp()) {
    width(mlp->width);
  }
  return cuts;
}

namespace {

/// Convolution with its bias; decay, skip and step of each head; the gated norm.
std::int64_t vectors_of(const Mamba2Part& mamba) {
  return mamba.convolved() * (mamba.taps + 1) + 3 * mamba.heads + mamba.inner();
}

/// Convolution; decay and step of each head, Kimi's of each channel; the gated norm over one head.
std::int64_t vectors_of(const DeltaPart& delta) {
  const std::int64_t steps = delta.gate_rank > 0 ? delta.values() : delta.value_heads;
  return delta.convolved() * delta.taps + delta.value_heads + steps + delta.value_dim;
}

/// Sinks, norms of heads and norms of latents.
std::int64_t vectors_of(const AttentionPart& attention) {
  std::int64_t count = attention.sinks ? attention.heads : 0;
  if (attention.qk_norm) count += 2 * attention.head_dim;
  if (attention.latents) count += attention.latents->query_rank + attention.latents->kv_rank;
  const bool indexes = attention.indexer && !attention.indexer->shared;
  if (indexes) count += 2 * attention.indexer->dim;  // a layer norm of its keys
  return count;
}

}  // namespace

Tally tally_of(const Layer& layer, std::int64_t hidden) {
  Tally sum;
  for (const LayerMatrix& each : matrices_of(layer, hidden)) sum.add(each);
  if (const AttentionPart* const mixer = layer.attention()) sum.vector(vectors_of(*mixer));
  if (const auto* const mixer = std::get_if<Mamba2Part>(&layer.mixer))
    sum.vector(vectors_of(*mixer));
  if (const auto* const mixer = std::get_if<DeltaPart>(&layer.mixer))
    sum.vector(vectors_of(*mixer));
  // By convention the router's biases are no active parameters.
  const ExpertsPart* const experts = layer.experts();
  if (experts && experts->router_bias) sum.total += experts->count;
  if (const auto* const part = std::get_if<CountedPart>(&layer.mixer)) sum.add(part->count);
  if (const auto* const part = std::get_if<CountedPart>(&layer.channel)) sum.add(part->count);
  return sum;
}

std::int64_t LayerList::count(const Layer& kind) const {
  return count_if([&](const Layer& each) { return each == kind; });
}

void LayerList::push_back(const Layer& layer) {
  const auto found = std::ranges::find(kinds_, layer);
  kind_.push_back(static_cast<std::uint16_t>(found - kinds_.begin()));
  if (found == kinds_.end()) kinds_.push_back(layer);
}

void LayerList::resize(std::int64_t count) {
  LayerList next;
  for (std::int64_t i = 0; i < count; ++i) next.push_back(i < size() ? (*this)[i] : back());
  *this = std::move(next);
}

}  // namespace orrery::models
