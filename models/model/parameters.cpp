#include <algorithm>

#include "models/model/model.hpp"
#include "sim/errors.hpp"

namespace orrery::models {
namespace {

std::int64_t query_width(const Model& model) {
  return model.heads * model.head_dim;
}
std::int64_t key_width(const Model& model) {
  return model.kv_heads * model.head_dim;
}

bool biased_norm(const Model& model) {
  return model.norm == Norm::layer_norm && model.norm_bias;
}

std::int64_t norm_width(const Model& model) {
  return model.hidden * (biased_norm(model) ? 2 : 1);
}

std::int64_t norms_per_layer(const Model& model) {
  return (model.shared_norm ? 1 : 2) + (model.post_norms ? 2 : 0);
}

/// Matrices of one layer.
std::int64_t layer_gemms(const Model& model) {
  const std::int64_t q = query_width(model);
  return model.hidden * (q + 2 * key_width(model)) + q * model.hidden +
         (model.gated_mlp ? 3 : 2) * model.hidden * model.ffn_hidden;
}

/// Biases and norms of one layer.
std::int64_t layer_vectors(const Model& model) {
  std::int64_t count = norms_per_layer(model) * norm_width(model);
  if (model.qkv_bias) count += query_width(model) + 2 * key_width(model);
  if (model.output_bias) count += model.hidden;
  if (model.mlp_bias) count += (model.gated_mlp ? 2 : 1) * model.ffn_hidden + model.hidden;
  if (model.qk_norm) count += 2 * model.head_dim;
  return count;
}

/// The matrices between tokens' rows and the layers.
std::int64_t projections(const Model& model) {
  return projects_embeddings(model) ? 2 * model.embedding_dim * model.hidden : 0;
}

std::int64_t embedding_parameters(const Model& model) {
  const std::int64_t rows = position_rows(model) + model.token_types;
  return model.vocab * embedding_width(model) + projections(model) + rows * model.hidden +
         (model.embedding_norm ? norm_width(model) : 0);
}

std::int64_t head_parameters(const Model& model) {
  const std::int64_t h = model.hidden;
  std::int64_t count = 0;
  if (!model.tied_embeddings) count += model.vocab * embedding_width(model);
  if (model.head_bias) count += model.vocab;
  if (model.head_transform) count += h * h + h + norm_width(model);
  if (model.pooler) count += h * h + h + 2 * h + 2;
  return count;
}

}  // namespace

bool projects_embeddings(const Model& model) {
  return model.embedding_dim > 0 && model.embedding_dim != model.hidden;
}

std::int64_t embedding_width(const Model& model) {
  return projects_embeddings(model) ? model.embedding_dim : model.hidden;
}

std::int64_t position_rows(const Model& model) {
  if (model.positions != Positions::learned) return 0;
  return model.max_positions + model.extra_position_rows;
}

std::int64_t count_parameters(const Model& model) {
  ensure(model.experts == 0, "the dense formula counts no experts");
  return embedding_parameters(model) + model.layers * (layer_gemms(model) + layer_vectors(model)) +
         (model.final_norm ? norm_width(model) : 0) + head_parameters(model);
}

std::string dense_formula(const Model& model) {
  const std::string norm = biased_norm(model) ? "2h" : "h";
  std::string layer = "h(q+2k) + qh + " + std::string(model.gated_mlp ? "3hf" : "2hf");
  if (model.qkv_bias) layer += " + q+2k";
  if (model.output_bias) layer += " + h";
  if (model.mlp_bias) layer += model.gated_mlp ? " + 2f+h" : " + f+h";
  if (model.qk_norm) layer += " + 2d";
  layer += " + " + std::to_string(norms_per_layer(model)) + "*" + norm;
  const std::string words = projects_embeddings(model) ? "Ve" : "Vh";
  std::string all = words;
  if (projects_embeddings(model)) all += " + 2eh";
  if (position_rows(model) > 0) all += " + Ph";
  if (model.token_types > 0) all += " + Th";
  if (model.embedding_norm) all += " + " + norm;
  all += " + L(" + layer + ")";
  if (model.final_norm) all += " + " + norm;
  if (!model.tied_embeddings) all += " + " + words;
  if (model.head_transform) all += " + hh+h+" + norm;
  if (model.head_bias) all += " + V";
  if (model.pooler) all += " + hh+h+2h+2";
  return all;
}

std::int64_t dense_gemm_parameters(const Model& model) {
  return model.layers * layer_gemms(model) + model.vocab * embedding_width(model) +
         projections(model) + (model.head_transform ? model.hidden * model.hidden : 0);
}

double forward_flops_per_token(const Model& model, std::int64_t seq_len) {
  const auto s = static_cast<double>(seq_len);
  const auto w = static_cast<double>(
      model.sliding_window > 0 ? std::min(model.sliding_window, seq_len) : seq_len);
  const double attended = model.causal ? w - w * w / (2.0 * s) : s;
  const std::int64_t value_dim = model.value_dim > 0 ? model.value_dim : model.head_dim;
  const auto widths = static_cast<double>(model.heads * (model.head_dim + value_dim));
  const std::int64_t gemms =
      model.gemm_parameters > 0 ? model.gemm_parameters : dense_gemm_parameters(model);
  const std::int64_t layers = model.attention_layers > 0 ? model.attention_layers : model.layers;
  return 2.0 * static_cast<double>(gemms) + 2.0 * static_cast<double>(layers) * widths * attended;
}

}  // namespace orrery::models
