// Parameters and FLOPs of a model by its fields, and the models of its single layers.

#include <algorithm>

#include "models/model/counts.hpp"
#include "models/model/model.hpp"
#include "sim/errors.hpp"

namespace orrery::models {
namespace {

std::int64_t query_width(const Model& model) {
  return model.attention.heads * model.attention.head_dim;
}
std::int64_t key_width(const Model& model) {
  return model.attention.kv_heads * model.attention.head_dim;
}

bool biased_norm(const Model& model) {
  return model.norms.kind == Norm::layer_norm && model.norms.bias;
}

std::int64_t norm_width(const Model& model) {
  return model.hidden * (biased_norm(model) ? 2 : 1);
}

std::int64_t norms_per_layer(const Model& model) {
  return (model.norms.shared ? 1 : 2) + (model.norms.sandwich ? 2 : 0);
}

/// Matrices of latent attention, with r and c the ranks of query and key-value latents, H heads of
/// width d, of which p columns are rotated, and v the width of a value:
///   h r + r H d  (h H d without r)  +  h (c + p)  +  c H (d - p + v)  +  H v h
/// Source  DeepSeek-AI 2024, arXiv 2405.04434, section 2.1
std::int64_t latent_gemms(const Model& model) {
  const std::int64_t h = model.hidden, q = query_width(model), r = model.latent.query_rank;
  const std::int64_t values = model.attention.heads * model.latent.value_dim;
  return (r > 0 ? r * (h + q) : h * q) + h * (model.latent.kv_rank + model.latent.rotary_dim) +
         model.latent.kv_rank * (q - model.attention.heads * model.latent.rotary_dim + values) +
         values * h;
}

std::int64_t attention_gemms(const Model& model) {
  if (model.latent.kv_rank > 0) return latent_gemms(model);
  const std::int64_t q = query_width(model);
  return model.hidden * (q + 2 * key_width(model)) + q * model.hidden;
}

std::int64_t mlp_gemms(const Model& model, std::int64_t width) {
  return (model.mlp.gated ? 3 : 2) * model.hidden * width;
}

/// Matrices of one layer, counting `met` of its experts.
std::int64_t layer_gemms(const Model& model, std::int64_t met) {
  const std::int64_t attention = attention_gemms(model);
  if (model.experts.count == 0) return attention + mlp_gemms(model, model.mlp.width);
  return attention + model.hidden * model.experts.count + met * mlp_gemms(model, model.mlp.width) +
         mlp_gemms(model, model.experts.shared_width);
}

/// Biases and norms of one layer, counting `met` of its experts; the router's biases count only
/// where all experts do.
std::int64_t layer_vectors(const Model& model, std::int64_t met) {
  std::int64_t count = norms_per_layer(model) * norm_width(model);
  if (model.attention.qkv_bias) count += query_width(model) + 2 * key_width(model);
  if (model.attention.output_bias) count += model.hidden;
  const std::int64_t mlps = model.experts.count > 0 ? met : 1;
  if (model.mlp.bias) {
    count += mlps * ((model.mlp.gated ? 2 : 1) * model.mlp.width + model.hidden);
  }
  if (model.experts.router_bias && met == model.experts.count) count += model.experts.count;
  if (model.attention.sinks) count += model.attention.heads;
  if (model.latent.kv_rank > 0) count += model.latent.query_rank + model.latent.kv_rank;
  if (model.attention.qk_norm) count += 2 * model.attention.head_dim;
  return count;
}

/// Sum of `count` over all layers, counting `met` experts in those that have experts.
template <class Count>
std::int64_t over_layers(const Model& model, std::int64_t met, Count count) {
  if (model.experts.count == 0) return model.layers * count(model, 0);
  std::int64_t sparse = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) sparse += has_experts(model, layer);
  std::int64_t sum = sparse * count(model, met);
  if (sparse < model.layers) {
    Model plain = model;
    plain.experts.count = 0;
    plain.mlp.width = model.experts.dense_width;
    sum += (model.layers - sparse) * count(plain, 0);
  }
  return sum;
}

/// The matrices between the embedding width and the layers' width.
std::int64_t projections(const Model& model) {
  return projects_embeddings(model) ? 2 * model.embedding.width * model.hidden : 0;
}

std::int64_t embedding_parameters(const Model& model) {
  const std::int64_t rows = position_rows(model) + model.embedding.token_types;
  return model.embedding.vocab * embedding_width(model) + projections(model) + rows * model.hidden +
         (model.norms.embedding ? norm_width(model) : 0);
}

std::int64_t head_parameters(const Model& model) {
  const std::int64_t h = model.hidden;
  std::int64_t count = model.head.transform ? h * h + h + norm_width(model) : 0;
  if (model.head.task_outputs > 0)
    return count + h * model.head.task_outputs + model.head.task_outputs;
  if (!model.embedding.tied) count += model.embedding.vocab * embedding_width(model);
  if (model.head.bias) count += model.embedding.vocab;
  if (model.head.pooler) count += h * h + h + 2 * h + 2;
  return count;
}

}  // namespace

bool has_experts(const Model& model, std::int64_t layer) {
  return model.experts.count > 0 && layer >= model.experts.dense_first &&
         (layer + 1) % model.experts.every == 0;
}

bool attends_fully(const Model& model, std::int64_t layer) {
  const auto index = static_cast<std::size_t>(layer);
  return index < model.attention.full.size() && model.attention.full[index];
}

std::vector<bool> every_nth(std::int64_t layers, std::int64_t n) {
  std::vector<bool> chosen;
  for (std::int64_t layer = 1; n > 0 && layer <= layers; ++layer) chosen.push_back(layer % n == 0);
  return chosen;
}

Model layer_model(const Model& model, std::int64_t layer) {
  Model alike = model;
  alike.experts.dense_first = 0;
  alike.experts.every = 1;
  alike.attention.full.clear();
  if (attends_fully(model, layer)) alike.attention.window = alike.attention.chunk = 0;
  if (model.experts.count > 0 && !has_experts(model, layer)) {
    alike.experts.count = alike.experts.per_token = alike.experts.shared_width = 0;
    alike.mlp.width = model.experts.dense_width;
  }
  return alike;
}

bool projects_embeddings(const Model& model) {
  return model.embedding.width > 0 && model.embedding.width != model.hidden;
}

std::int64_t embedding_width(const Model& model) {
  return projects_embeddings(model) ? model.embedding.width : model.hidden;
}

std::int64_t position_rows(const Model& model) {
  if (model.embedding.positions != Positions::learned) return 0;
  return model.embedding.max_positions + model.embedding.extra_position_rows;
}

Model generator_model(const Model& model) {
  Model generator = model;
  const std::int64_t g = model.generator_hidden;
  generator.hidden = g;
  generator.attention.heads = generator.attention.kv_heads =
      std::max<std::int64_t>(1, model.attention.heads * g / model.hidden);
  generator.attention.head_dim = g / generator.attention.heads;
  generator.mlp.width = model.mlp.width * g / model.hidden;
  generator.embedding.width = model.hidden;
  generator.head.transform = false;
  generator.head.bias = generator.embedding.tied = true;
  generator.head.pooler = false;
  generator.head.task_outputs = generator.generator_hidden = 0;
  return generator;
}

Model prediction_model(const Model& model) {
  Model ahead = layer_model(model, model.layers - 1);
  ahead.prediction_layers = 0;
  return ahead;
}

namespace {

/// Matrices of ELECTRA's generator: its layers, and g h in and out.
std::int64_t generator_gemms(const Model& model) {
  if (model.generator_hidden == 0) return 0;
  const Model own = generator_model(model);
  return own.layers * layer_gemms(own, 0) + 2 * own.hidden * model.hidden;
}

/// Matrix of its head, which is its model's table: a GEMM more, no parameter more.
std::int64_t generator_head(const Model& model) {
  if (model.generator_hidden == 0) return 0;
  return model.embedding.vocab * embedding_width(generator_model(model));
}

std::int64_t generator_vectors(const Model& model) {
  if (model.generator_hidden == 0) return 0;
  const Model own = generator_model(model);
  return own.layers * layer_vectors(own, 0) + own.hidden + own.embedding.vocab;
}

/// Matrices of all prediction layers, counting `met` of each one's experts.
std::int64_t prediction_gemms(const Model& model, std::int64_t met) {
  if (model.prediction_layers == 0) return 0;
  const Model own = prediction_model(model);
  return model.prediction_layers *
         (layer_gemms(own, std::min(met, own.experts.count)) + 2 * model.hidden * model.hidden);
}

std::int64_t prediction_vectors(const Model& model, std::int64_t met) {
  if (model.prediction_layers == 0) return 0;
  const Model own = prediction_model(model);
  return model.prediction_layers * (layer_vectors(own, std::min(met, own.experts.count)) +
                                    (model.norms.final ? 3 : 2) * norm_width(model));
}

std::int64_t parameters_met(const Model& model, std::int64_t experts) {
  return embedding_parameters(model) + over_layers(model, experts, layer_gemms) +
         over_layers(model, experts, layer_vectors) + (model.norms.final ? norm_width(model) : 0) +
         head_parameters(model) + prediction_gemms(model, experts) +
         prediction_vectors(model, experts) + generator_gemms(model) + generator_vectors(model);
}

}  // namespace

std::int64_t count_parameters(const Model& model) {
  return parameters_met(model, model.experts.count);
}

std::int64_t count_prediction_parameters(const Model& model) {
  return prediction_gemms(model, model.experts.count) +
         prediction_vectors(model, model.experts.count);
}

std::int64_t count_active_parameters(const Model& model) {
  return parameters_met(model, model.experts.per_token);
}

std::string dense_formula(const Model& model) {
  const std::string norm = biased_norm(model) ? "2h" : "h";
  std::string layer = model.latent.kv_rank > 0 ? "latent attention + " : "h(q+2k) + qh + ";
  layer += model.experts.count > 0 ? "router hE + E*" : "";
  layer += model.mlp.gated ? "3hf" : "2hf";
  if (model.experts.shared_width > 0) layer += " + shared";
  if (model.attention.qkv_bias) layer += " + q+2k";
  if (model.attention.output_bias) layer += " + h";
  if (model.mlp.bias) layer += model.mlp.gated ? " + 2f+h" : " + f+h";
  if (model.attention.qk_norm) layer += " + 2d";
  layer += " + " + std::to_string(norms_per_layer(model)) + "*" + norm;
  const std::string words = projects_embeddings(model) ? "Ve" : "Vh";
  std::string all = words;
  if (projects_embeddings(model)) all += " + 2eh";
  if (position_rows(model) > 0) all += " + Ph";
  if (model.embedding.token_types > 0) all += " + Th";
  if (model.norms.embedding) all += " + " + norm;
  all += " + L(" + layer + ")";
  if (model.norms.final) all += " + " + norm;
  if (model.prediction_layers > 0) all += " + D(layer + 2hh + norms)";
  if (model.generator_hidden > 0) all += " + generator";
  if (model.head.transform) all += " + hh+h+" + norm;
  if (model.head.task_outputs > 0) return all + " + ha+a";
  if (!model.embedding.tied) all += " + " + words;
  if (model.head.bias) all += " + V";
  if (model.head.pooler) all += " + hh+h+2h+2";
  return all;
}

std::int64_t dense_gemm_parameters(const Model& model) {
  const std::int64_t head = model.head.task_outputs > 0
                                ? model.head.task_outputs * model.hidden
                                : model.embedding.vocab * embedding_width(model);
  const std::int64_t further =
      prediction_gemms(model, model.experts.per_token) + model.prediction_layers * head;
  return over_layers(model, model.experts.per_token, layer_gemms) + head + projections(model) +
         further + generator_gemms(model) + generator_head(model) +
         (model.head.transform ? model.hidden * model.hidden : 0);
}

double attended_tokens(const Model& layer, std::int64_t seq_len) {
  const std::int64_t part =
      layer.attention.chunk > 0 ? std::min(layer.attention.chunk, seq_len) : seq_len;
  const auto pairs = [&](std::int64_t length) {
    const auto s = static_cast<double>(length);
    if (!layer.causal) return s * s;
    const std::int64_t window = layer.attention.window > 0 ? layer.attention.window : length;
    const auto w = static_cast<double>(std::min(window, length));
    return w * s - w * w / 2;
  };
  const auto whole = static_cast<double>(seq_len / part);
  return (whole * pairs(part) + pairs(seq_len % part)) / static_cast<double>(seq_len);
}

namespace {

/// The same FLOPs in one of a model's equal layers.
double layer_attention_flops(const Model& layer, std::int64_t seq_len) {
  const std::int64_t value_dim =
      layer.latent.value_dim > 0 ? layer.latent.value_dim : layer.attention.head_dim;
  const auto widths =
      static_cast<double>(layer.attention.heads * (layer.attention.head_dim + value_dim));
  return 2.0 * widths * attended_tokens(layer, seq_len);
}

}  // namespace

double attention_flops_per_token(const Model& model, std::int64_t seq_len) {
  const std::int64_t layers =
      model.tally.attention_layers > 0 ? model.tally.attention_layers : model.layers;
  std::int64_t full = 0;
  for (std::int64_t layer = 0; layer < layers; ++layer) full += attends_fully(model, layer);
  Model wide = model;
  wide.attention.window = wide.attention.chunk = 0;
  return static_cast<double>(layers - full) * layer_attention_flops(model, seq_len) +
         static_cast<double>(full) * layer_attention_flops(wide, seq_len);
}

double forward_flops_per_token(const Model& model, std::int64_t seq_len) {
  const std::int64_t gemms =
      model.tally.gemm_parameters > 0 ? model.tally.gemm_parameters : dense_gemm_parameters(model);
  double flops = 2.0 * static_cast<double>(gemms) + attention_flops_per_token(model, seq_len);
  if (model.prediction_layers > 0) {
    flops += static_cast<double>(model.prediction_layers) *
             layer_attention_flops(prediction_model(model), seq_len);
  }
  if (model.generator_hidden == 0) return flops;
  return flops + attention_flops_per_token(generator_model(model), seq_len);
}

}  // namespace orrery::models
