// Readers of Gemma 3 and later: norms before and after attention and MLP, windows on most layers.
// Source  Gemma Team 2025, arXiv 2503.19786; modeling_gemma3.py, modeling_gemma3n.py and
//         modeling_gemma4.py of the transformers library
#include <fmt/format.h>

#include <cmath>

#include "hardware/reading.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {

void read_gemma_numerics(Config& config, ModelDraft& model) {
  model.norms.offset = 1;
  model.embedding.multiplier = std::sqrt(static_cast<double>(model.hidden));
  const auto head_dim = static_cast<double>(model.attention.head_dim);
  if (const auto stated = config.find("query_pre_attn_scalar")) {
    const double scalar = hardware::within(*stated, 1e-6, 1e9);
    model.embedding.rotary.score_factor = std::sqrt(head_dim / scalar);
  }
  const bool of_scores = config.find("attn_logit_softcapping").has_value();
  const bool of_logits = config.find("final_logit_softcapping").has_value();
  if (of_scores || of_logits) also_inexact(model, "softcaps of scores and logits");
}

namespace {

constexpr std::int64_t most_rank = 1 << 12;

ModelDraft sandwiched(Config& config) {
  ModelDraft model = llama_like(config);
  model.mlp.activation = config.activation("hidden_activation", Activation::gelu);
  model.attention.qkv_bias = model.attention.output_bias = config.flag("attention_bias", false);
  model.attention.qk_norm = model.norms.sandwich = true;
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  config.find("use_bidirectional_attention");
  return model;
}

/// Which layers attend to all tokens: those of `layer_types`, or else every n-th.
std::vector<bool> full_layers(Config& config, ModelDraft& model, std::int64_t every) {
  read_window(config, model, every_nth(model.depth, every));
  if (model.full.empty()) model.full = every_nth(model.depth, every);
  return model.full;
}

/// Embeddings of width p for every layer, projected from and to the hidden width.
///   V L p + h L p + p  +  L (2 h p + h)
void count_layer_embeddings(Config& config, ModelDraft& model) {
  const std::int64_t p = config.size_or("hidden_size_per_layer_input", Limits::hidden, 0);
  const std::int64_t rows = config.size_or("vocab_size_per_layer_input", Limits::vocab, 0);
  if (p == 0) return;
  model.further.vector(rows * model.depth * p + p + model.depth * model.hidden);
  model.further.matrix(3 * model.hidden * model.depth * p);
  model.not_simulated = "embeddings of every layer are counted, not yet simulated";
}

/// The last `num_kv_shared_layers`, which attend to keys and values of earlier layers.
std::int64_t sharing_layers(Config& config, const ModelDraft& model) {
  return config.size_or("num_kv_shared_layers", model.depth, 0);
}

}  // namespace

/// Layers with a window rotate by positions of their own.
Model read_gemma3(Config& config) {
  constexpr double usual_base = 1e6, usual_local_base = 1e4;
  ModelDraft model = sandwiched(config);
  read_gemma_numerics(config, model);
  model.embedding.rotary.base = usual_base;
  model.attention.rotary_base = usual_local_base;
  const auto named = config.find("rope_parameters");
  const auto local = named ? named->find("sliding_attention") : std::nullopt;
  const auto nested = local && local->is_object() ? local->find("rope_theta") : std::nullopt;
  if (const auto base = nested ? nested : config.find("rope_local_base_freq")) {
    model.attention.rotary_base = hardware::within(*base, 1e-6, 1e12);
  }
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  const std::int64_t usual = config.positive_or("_sliding_window_pattern", Limits::layers, 6);
  full_layers(config, model, config.positive_or("sliding_window_pattern", Limits::layers, usual));
  return built(model);
}

/// Four parallel copies of the residual stream (AltUp), a low-rank branch (Laurel), embeddings of
/// every layer, and layers without keys and values of their own. Of c copies and rank r, beside
/// Gemma 3's layers:
///   L (h + c c + c c c + c h + h  +  2 h r + h)  +  2 (c - 1) h h
Model read_gemma3n(Config& config) {
  ModelDraft model = sandwiched(config);
  const auto widths = config.find("intermediate_size");
  const std::int64_t one =
      widths && widths->is_array() ? 0 : config.size("intermediate_size", Limits::ffn_hidden);
  full_layers(config, model, 5);
  const std::int64_t own = model.depth - sharing_layers(config, model);
  for (std::int64_t i = 0; i < model.depth; ++i) {
    Layer layer{model.attention, model.mlp};
    auto& mlp = std::get<MlpPart>(layer.channel);
    mlp.width =
        one > 0 ? one : widths->at(static_cast<std::size_t>(i)).integer(1, Limits::ffn_hidden);
    auto& attention = std::get<AttentionPart>(layer.mixer);
    if (model.full[static_cast<std::size_t>(i)]) attention.window = 0;
    model.layers.push_back(layer);
    if (i < own) continue;
    model.further.matrix(-2 * model.hidden * attention.key_columns());
    model.further.vector(-attention.head_dim -
                         (attention.qkv_bias ? 2 * attention.key_columns() : 0));
  }
  const std::int64_t h = model.hidden, c = config.size("altup_num_inputs", 64);
  const std::int64_t r = config.size("laurel_rank", most_rank);
  model.further.matrix(model.depth * (c * c + c * c * c + c * h + 2 * h * r) + 2 * (c - 1) * h * h);
  model.further.vector(model.depth * 3 * h);
  if (config.size_or("hidden_size_per_layer_input", Limits::hidden, 0) == 0) {
    model.further.vector(model.depth * h);  // the norm of what the embeddings would give
  }
  for (const char* key : {"activation_sparsity_pattern", "altup_active_idx", "altup_coef_clip",
                          "altup_correct_scale", "altup_lr_multiplier"}) {
    config.find(key);
  }
  count_layer_embeddings(config, model);
  model.not_simulated =
      "parallel residual streams and embeddings of every layer are counted, not yet simulated";
  return built(model);
}

namespace {

/// Layers that attend to all tokens have wider heads; with `attention_k_eq_v` fewer key heads,
/// whose keys are also the values. Newer files list the layers that differ.
AttentionPart full_attention_of(Config& config, const ModelDraft& model, std::int64_t layer) {
  AttentionPart attention = model.attention;
  attention.window = 0;
  const auto listed = config.find("per_layer_config");
  const auto number = listed ? listed->find(fmt::format("{:02}", layer)) : std::nullopt;
  const auto own = listed && !number ? listed->find(std::to_string(layer)) : number;
  const auto of = [&](const char* key, std::int64_t high, std::int64_t otherwise) {
    const auto found = own ? own->find(key) : std::nullopt;
    return found ? found->integer(1, high) : otherwise;
  };
  const std::int64_t wide = config.positive_or("global_head_dim", Limits::head_dim, 512);
  const std::int64_t few =
      config.positive_or("num_global_key_value_heads", Limits::heads, attention.kv_heads);
  const bool keys_are_values = config.flag("attention_k_eq_v", false);
  attention.head_dim = of("head_dim", Limits::head_dim, listed ? attention.head_dim : wide);
  attention.kv_heads = of("num_key_value_heads", Limits::heads,
                          keys_are_values && !listed ? few : attention.kv_heads);
  return attention;
}

/// Experts beside the MLP of a layer; the router has a scale for each column and each expert.
void read_parallel_experts(Config& config, ModelDraft& model) {
  model.experts.count = config.size("num_experts", Limits::experts);
  model.experts.per_token =
      config.size({"top_k_experts", "num_experts_per_tok"}, model.experts.count);
  model.experts.mlp = model.mlp;
  model.experts.mlp.width =
      config.size({"moe_intermediate_size", "expert_intermediate_size"}, Limits::expert_hidden);
  model.experts.shared_width = model.mlp.width;
  model.further.vector(model.depth * (4 * model.hidden + model.experts.count));
  also_inexact(model, "norms around experts");
}

/// A model that drafts tokens for another of width b attends to that one's keys and values alone,
/// between two projections, and may look tokens up by their centroids:  3 b h + h centroids. The
/// layers that share keys and values: all, if the file counts none.
std::int64_t read_assistant(Config& config, ModelDraft& model, std::int64_t sharing) {
  const auto other = config.find("backbone_hidden_size");
  if (!other) return sharing;
  model.further.matrix(3 * other->integer(1, Limits::hidden) * model.hidden);
  const std::int64_t centroids = config.positive_or("num_centroids", Limits::vocab, 2048);
  if (config.flag("use_ordered_embeddings", false)) {
    model.further.matrix(centroids * model.hidden);
  }
  config.find("centroid_intermediate_top_k");
  return sharing > 0 ? sharing : model.depth;
}

}  // namespace

Model read_gemma4(Config& config) {
  ModelDraft model = sandwiched(config);
  also_inexact(model, "norms of values, and scores that are not scaled");
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  for (const char* key : {"num_experts", "top_k_experts", "moe_intermediate_size",
                          "expert_intermediate_size", "layer_types", "vocab_size_per_layer_input"})
    config.find(key);
  const bool experts = config.flag("enable_moe_block", false);
  if (experts) read_parallel_experts(config, model);
  std::vector<bool> full = full_layers(config, model, 6);
  full.back() = true;
  const std::int64_t sharing = read_assistant(config, model, sharing_layers(config, model));
  const bool wide_mlp = config.flag("use_double_wide_mlp", false);
  const bool keys_are_values = config.flag("attention_k_eq_v", false);
  for (std::int64_t i = 0; i < model.depth; ++i) {
    Layer layer{model.attention, model.mlp};
    const bool sees_all = full[static_cast<std::size_t>(i)], shares = i >= model.depth - sharing;
    auto& attention = std::get<AttentionPart>(layer.mixer);
    if (sees_all) attention = full_attention_of(config, model, i);
    if (shares && wide_mlp) std::get<MlpPart>(layer.channel).width *= 2;
    const std::int64_t keys = model.hidden * attention.key_columns();
    const std::int64_t biases = attention.qkv_bias ? attention.key_columns() : 0;
    if (shares) {
      model.further.matrix(-2 * keys);
      model.further.vector(-attention.head_dim - 2 * biases);
    } else if (sees_all && keys_are_values) {
      model.further.matrix(-keys);
      model.further.vector(-biases);
    }
    if (experts) layer.channel = model.experts;
    model.layers.push_back(layer);
  }
  if (keys_are_values) also_inexact(model, "values that are keys, priced as a projection");
  count_layer_embeddings(config, model);
  if (sharing > 0 && !model.not_simulated) {
    model.not_simulated = "layers that share keys and values are counted, not yet simulated";
  }
  model.formula = "layers by their own heads and widths, language model only";
  return built(model);
}

}  // namespace orrery::models
