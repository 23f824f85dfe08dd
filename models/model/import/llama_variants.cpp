// Readers of dense decoders that differ from LLaMA in parameters: other norms, an MLP without a
// gate, norms of queries and keys. Norms without weights, and those inside attention and MLP, have
// no kernel of their own in the price.
#include "models/model/import/drafts.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

void layer_norms(ModelDraft& model, bool bias) {
  model.norms.kind = Norm::layer_norm;
  model.norms.bias = bias;
}

/// Takes the weights of all norms of the hidden width out of the count.
void weightless_norms(ModelDraft& model) {
  model.further.vector(-(2 * model.depth + 1) * model.hidden);
  also_inexact(model, "norms without weights");
}

}  // namespace

/// Source  ArceeForCausalLM of the transformers library
Model read_arcee(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.mlp.gated = false;
  return built(model);
}

/// Two learned numbers in each layer's activation, xIELU.
/// Source  Apertus team 2025, arXiv 2509.14233
Model read_apertus(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.mlp.gated = false;
  model.attention.qk_norm = true;
  model.further.vector(2 * model.depth);
  return built(model);
}

/// A norm before attention's output projection and one before the MLP's.
/// Source  Ma et al. 2025, arXiv 2504.12285; BitNetForCausalLM of the transformers library
Model read_bitnet(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.further.vector(model.depth * (model.hidden + model.mlp.width));
  also_inexact(model, "norms inside attention and MLP, and ternary weights");
  return built(model);
}

/// Attention and MLP after one layer norm without bias.
/// Source  CohereForCausalLM of the transformers library
ModelDraft cohere_like(Config& config) {
  ModelDraft model = llama_with_biases(config);
  layer_norms(model, false);
  model.parallel_block = model.norms.shared = true;
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  also_inexact(model, "rotary embedding on interleaved pairs, and scaled logits");
  return model;
}
Model read_cohere(Config& config) {
  ModelDraft model = cohere_like(config);
  if (config.flag("use_qk_norm", false)) norm_all_heads(model);
  return built(model);
}

/// Every fourth layer attends to all tokens, and does not rotate.
/// Source  Cohere2ForCausalLM of the transformers library
Model read_cohere2(Config& config) {
  ModelDraft model = cohere_like(config);
  read_window(
      config, model,
      every_nth(model.depth, config.positive_or("sliding_window_pattern", Limits::layers, 4)));
  for (const char* key : {"order_of_interleaved_layers", "rotary_pct", "use_embedding_sharing",
                          "use_gated_activation", "use_parallel_block", "use_parallel_embedding"}) {
    config.find(key);
  }
  return built(model);
}

/// Attention is the difference of two softmaxes; four vectors of a head's width weigh them.
/// Source  Ye et al. 2024, arXiv 2410.05258; DiffLlamaForCausalLM of the transformers library
Model read_diffllama(Config& config) {
  ModelDraft model = llama_with_biases(config);
  config.find("lambda_std_dev");
  model.mlp.bias = false;
  model.further.vector(model.depth * 4 * model.attention.head_dim);
  also_inexact(model, "attention as the difference of two softmaxes");
  return built(model);
}

/// GLM with two more norms in each layer.
/// Source  Glm4ForCausalLM of the transformers library
Model read_glm4(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.attention.output_bias = model.mlp.bias = false;
  model.norms.sandwich = true;
  also_inexact(model, "rotary embedding on interleaved pairs");
  return built(model);
}

/// Source  Jais2ForCausalLM of the transformers library
Model read_jais2(Config& config) {
  ModelDraft model = llama_with_biases(config);
  layer_norms(model, true);
  model.mlp.gated = false;
  return built(model);
}

/// Source  NanoChatForCausalLM of the transformers library
Model read_nanochat(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.mlp.gated = false;
  weightless_norms(model);
  return built(model);
}

/// Source  Groeneveld et al. 2024, arXiv 2402.00838; OlmoForCausalLM of the transformers library
Model read_olmo(Config& config) {
  ModelDraft model = llama_with_biases(config);
  layer_norms(model, false);
  model.mlp.bias = false;
  config.find("clip_qkv");
  weightless_norms(model);
  return built(model);
}

/// Norms of the outputs of attention and MLP, none of their inputs.
/// Source  OLMo team 2025, arXiv 2501.00656
ModelDraft olmo2_like(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.mlp.bias = false;
  norm_all_heads(model);
  model.norms.of_outputs = true;
  return model;
}
Model read_olmo2(Config& config) {
  return built(olmo2_like(config));
}

/// Every fourth layer attends to all tokens, the others to a window.
/// Source  Olmo3ForCausalLM of the transformers library
Model read_olmo3(Config& config) {
  ModelDraft model = olmo2_like(config);
  read_window(config, model, every_nth(model.depth, 4));
  return built(model);
}

/// Biases everywhere but on the head; norms of queries and keys have some, too.
/// Source  PersimmonForCausalLM of the transformers library
Model read_persimmon(Config& config) {
  ModelDraft model = llama_with_biases(config);
  layer_norms(model, true);
  model.mlp.gated = false;
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias = true;
  model.attention.qk_norm = config.flag("qk_layernorm", true);
  if (model.attention.qk_norm) model.further.vector(model.depth * 2 * model.attention.head_dim);
  return built(model);
}

/// Source  Bellagente et al. 2024, arXiv 2402.17834; StableLmForCausalLM of the transformers
///         library
Model read_stablelm(Config& config) {
  ModelDraft model = llama_with_biases(config);
  layer_norms(model, true);
  model.attention.qkv_bias = config.flag("use_qkv_bias", false);
  model.attention.output_bias = model.mlp.bias = false;
  model.parallel_block = model.norms.shared = config.flag("use_parallel_residual", false);
  if (config.flag("qk_layernorm", false)) norm_all_heads(model);
  return built(model);
}

/// The decoder over text, without the one over depth and the audio encoder; its table has one row
/// more than its head.
/// Source  Defossez et al. 2024, arXiv 2410.00037; MoshiForCausalLM of the transformers library
Model read_moshi(Config& config) {
  config.assume({{"intermediate_size", config.size("ffn_dim", Limits::ffn_hidden) / 2}});
  ModelDraft model = llama_with_biases(config);
  model.attention.window = config.size_or("sliding_window", Limits::positions, 0);
  model.further.vector(model.hidden);
  model.embedding.tied = false;  // whatever the file says
  for (const char* key :
       {"audio_encoder_config", "depth_decoder_config", "num_codebooks", "audio_vocab_size"}) {
    config.find(key);
  }
  return built(model);
}

/// Layer norms without bias, of which the first layer has none before attention; a head with a
/// transform. Two of three layers attend to a window.
/// Source  Warner et al. 2024, arXiv 2412.13663; ModernBertForMaskedLM of the transformers library
ModelDraft modernbert_like(Config& config) {
  ModelDraft model = llama_with_biases(config);
  layer_norms(model, config.flag("norm_bias", false));
  model.mlp.activation = config.activation("hidden_activation", Activation::gelu_erf);
  model.norms.embedding = model.head.transform = true;
  model.head.bias = config.flag("decoder_bias", true);
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  model.further.vector(-(model.norms.bias ? 2 : 1) * model.hidden);
  if (!config.flag("classifier_bias", false)) model.further.vector(-model.hidden);
  also_inexact(model, "a first layer without a norm");
  return model;
}
Model read_modernbert(Config& config) {
  ModelDraft model = modernbert_like(config);
  model.family = Family::bert;
  model.causal = false;
  for (const char* key : {"layer_types", "local_attention", "global_attn_every_n_layers"}) {
    config.find(key);
  }
  also_inexact(model, "windows on both sides, priced as attention to all tokens");
  return built(model);
}
Model read_modernbert_decoder(Config& config) {
  ModelDraft model = modernbert_like(config);
  config.find("sliding_window");
  const std::int64_t step = config.positive_or("global_attn_every_n_layers", Limits::layers, 3);
  std::vector<bool> usual;
  for (std::int64_t i = 0; i < model.depth; ++i) usual.push_back(i % step == 0);
  model.attention.window = config.size_or("local_attention", Limits::positions, 128) / 2;
  const auto listed = read_full_attention(config, model, "sliding_attention");
  if (model.attention.window > 0) model.full = listed.value_or(usual);
  return built(model);
}

}  // namespace orrery::models
