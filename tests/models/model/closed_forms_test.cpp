// Parameters by the closed forms of the papers, for every model of the catalogue: an oracle that
// knows nothing of matrices.

#include <catch2/catch.hpp>
#include <numeric>

#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// h (q + 2k) + q h, or of latent attention with ranks r, c and H heads of width d, of which p
/// columns rotate, and values of width v (DeepSeek-AI 2024, arXiv 2405.04434, section 2.1):
///   h r + r H d (h H d without r)  +  h (c + p)  +  c H (d - p + v)  +  H v h
std::int64_t attention(const AttentionPart& of, std::int64_t h) {
  const std::int64_t q = of.heads * of.head_dim, k = of.kv_heads * of.head_dim;
  std::int64_t vectors = of.output_bias ? h : 0;
  if (of.qk_norm) vectors += 2 * of.head_dim;
  if (of.sinks) vectors += of.heads;
  if (!of.latents) return h * (q + 2 * k) + q * h + vectors + (of.qkv_bias ? q + 2 * k : 0);
  const std::int64_t r = of.latents->query_rank, c = of.latents->kv_rank,
                     p = of.latents->rotary_dim, v = of.value_dim;
  return vectors + (r > 0 ? r * (h + q) + r : h * q) + h * (c + p) + c +
         c * of.heads * (of.head_dim - p + v) + of.heads * v * h;
}

/// g h f, g being 3 of a gated MLP and 2 of a plain one.
std::int64_t mlp(const MlpPart& of, std::int64_t h) {
  const std::int64_t columns = (of.gated ? 2 : 1) * of.width;
  return h * columns + of.width * h + (of.bias ? columns + h : 0);
}

std::int64_t experts(const ExpertsPart& of, std::int64_t h) {
  MlpPart shared = of.mlp;
  shared.width = of.shared_width;
  return h * of.count + (of.router_bias ? of.count : 0) + of.count * mlp(of.mlp, h) +
         (of.shared_width > 0 ? mlp(shared, h) : 0);
}

std::int64_t layer(const Model& model, const Layer& of) {
  const std::int64_t h = model.hidden;
  const std::int64_t norm = model.norms.kind == Norm::layer_norm && model.norms.bias ? 2 * h : h;
  const std::int64_t norms = (model.norms.shared ? 1 : 2) + (model.norms.sandwich ? 2 : 0);
  return norms * norm + attention(*of.attention(), h) +
         (of.experts() ? experts(*of.experts(), h) : mlp(*of.mlp(), h));
}

bool closed(const Model& model) {
  return model.further.total == 0 && model.generator_hidden == 0 &&
         !model.layers.any([](const Layer& of) { return !of.attention() || !of.mlp(); });
}

TEST_CASE("Parameters are those of the closed forms, of every model of the catalogue") {
  int counted = 0;
  for (const std::string& name : model_names()) {
    const Model model = catalogue_model(name);
    if (!closed(model)) continue;
    INFO(name);
    const std::int64_t h = model.hidden, v = model.embedding.vocab, e = embedding_width(model);
    const std::int64_t norm = model.norms.kind == Norm::layer_norm && model.norms.bias ? 2 * h : h;
    std::int64_t sum = v * e + (position_rows(model) + model.embedding.token_types) * h;
    if (e != h) sum += 2 * e * h;
    if (model.norms.embedding) sum += norm;
    for (std::int64_t i = 0; i < model.layers.size(); ++i) sum += layer(model, model.layers[i]);
    if (model.norms.final) sum += norm;
    if (model.head.transform) sum += h * h + h + norm;
    if (!model.embedding.tied) sum += v * e;
    if (model.head.bias) sum += v;
    if (model.head.pooler) sum += h * h + h + 2 * h + 2;
    sum += model.prediction_layers * (layer(model, model.layers.back()) + 2 * h * h + 3 * norm);
    CHECK(model.parameters == sum);
    ++counted;
  }
  CHECK(counted > 40);
}

}  // namespace
}  // namespace orrery::models
