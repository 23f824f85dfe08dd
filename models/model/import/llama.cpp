// Readers of LLaMA and its relatives: RMS norms, rotary positions, a gated MLP, grouped-query
// attention.
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

ModelDraft with_mlp(Config& config, ModelDraft model) {
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  return model;
}

}  // namespace

Model read_llama(Config& config) {
  ModelDraft model = with_mlp(config, llama_like(config));
  model.attention.qkv_bias = model.attention.output_bias = config.flag("attention_bias", false);
  model.mlp.bias = config.flag("mlp_bias", false);
  return built(model);
}

Model read_mistral(Config& config) {
  ModelDraft model = with_mlp(config, llama_like(config));
  model.attention.window = config.size_or("sliding_window", Limits::positions, 0);
  return built(model);
}

/// Query, key and value have biases, though no key of the file says so.
Model read_qwen2(Config& config) {
  ModelDraft model = with_optional_window(config, with_mlp(config, llama_like(config)));
  model.attention.qkv_bias = true;
  return built(model);
}

Model read_qwen3(Config& config) {
  ModelDraft model = with_optional_window(config, with_mlp(config, llama_like(config)));
  model.attention.qkv_bias = model.attention.output_bias = config.flag("attention_bias", false);
  model.attention.qk_norm = true;
  return built(model);
}

/// Qwen2 whose biases of query, key and value are optional; counted without multi-token-prediction
/// modules.
/// Source  XiaomiMiMo/MiMo-7B-Base, modeling_mimo.py
Model read_mimo(Config& config) {
  ModelDraft model = with_optional_window(config, with_mlp(config, llama_like(config)));
  model.attention.qkv_bias = config.flag("attention_bias", true);
  return built(model);
}

Model read_phi3(Config& config) {
  ModelDraft model = with_mlp(config, llama_like(config));
  model.attention.window = config.size_or("sliding_window", Limits::positions, 0);
  return built(model);
}

/// Norms before and after attention and MLP; every second layer attends to a window only.
/// Source  Gemma Team 2024, arXiv 2408.00118
Model read_gemma2(Config& config) {
  ModelDraft model = with_mlp(config, llama_like(config));
  model.mlp.activation = config.activation("hidden_activation", Activation::gelu);
  model.attention.qkv_bias = model.attention.output_bias = config.flag("attention_bias", false);
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  model.norms.sandwich = true;
  const std::int64_t window = config.size_or("sliding_window", Limits::positions, 0);
  model.attention.window = config.size_or("sliding_window_size", Limits::positions, window);
  model.full =
      read_full_attention(config, model, "sliding_attention").value_or(every_nth(model.depth, 2));
  read_gemma_numerics(config, model);
  return built(model);
}

}  // namespace orrery::models
