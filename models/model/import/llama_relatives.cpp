// Readers of models that have LLaMA's, Qwen's or Mixtral's parameters and differ in what no GEMM
// shows: multipliers, softcaps, where norms stand, which layers rotate. They are simulated; what
// differs has no kernel of its own in the price, and the executor refuses it by name.
#include <string>

#include "models/model/import/drafts.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
ModelDraft llama_with_biases(Config& config) {
  ModelDraft model = llama_like(config);
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.attention.qkv_bias = model.attention.output_bias = config.flag("attention_bias", false);
  model.mlp.bias = config.flag("mlp_bias", false);
  return model;
}

void read_window(Config& config, ModelDraft& model, const std::vector<bool>& usual) {
  model.attention.window = config.size_or("sliding_window", Limits::positions, 0);
  const auto listed = read_full_attention(config, model, "sliding_attention");
  if (model.attention.window > 0) model.full = listed.value_or(usual);
}

void norm_all_heads(ModelDraft& model) {
  const AttentionPart& attention = model.attention;
  model.attention.qk_norm = true;
  model.further.vector(model.depth * (attention.heads + attention.kv_heads - 2) *
                       attention.head_dim);
  also_inexact(model, "norms over all heads at once");
}

void also_inexact(Model& model, const std::string& what) {
  if (!model.inexact.empty() && !what.empty()) model.inexact += "; ";
  model.inexact += what;
}

void read_multipliers(Config& config, Model& model) {
  for (const char* key :
       {"embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling"}) {
    config.find(key);
  }
  also_inexact(model, "multipliers of embeddings, residuals, scores and logits");
}

namespace {

ModelDraft gemma_like(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.mlp.activation = config.activation("hidden_activation", Activation::gelu);
  config.find("use_bidirectional_attention");
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  read_gemma_numerics(config, model);
  return model;
}

}  // namespace

/// Every fourth layer does not rotate its queries and keys.
/// Source  SmolLM3Config and modeling_smollm3.py of the transformers library
Model read_smollm3(Config& config) {
  ModelDraft model = with_optional_window(config, llama_with_biases(config));
  if (model.attention.window > 0 && !config.find("layer_types")) {
    config.fail("use_sliding_window", "which layers have the window is read from layer_types only");
  }
  config.find("no_rope_layers");
  config.find("no_rope_layer_interval");
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  also_inexact(model, "layers without rotary positions");
  return built(model);
}

/// Source  modeling_granite.py of the transformers library
Model read_granite(Config& config) {
  ModelDraft model = llama_with_biases(config);
  read_multipliers(config, model);
  return built(model);
}

/// The same multipliers around Mixtral's layers.
/// Source  modeling_granitemoe.py of the transformers library
Model read_granitemoe(Config& config) {
  Model model = read_mixtral(config);
  if (config.flag("attention_bias", false)) {
    config.fail("attention_bias", "biases are not supported for this type; expected false");
  }
  read_multipliers(config, model);
  return model;
}

/// Norms scale by 1 + weight, embeddings by the root of the width.
/// Source  Gemma Team 2024, arXiv 2403.08295
Model read_gemma(Config& config) {
  return built(gemma_like(config));
}

/// Gemma 2 without its norms after attention and MLP: every second layer has a window.
/// Source  modeling_vaultgemma.py of the transformers library
Model read_vaultgemma(Config& config) {
  ModelDraft model = gemma_like(config);
  read_window(config, model, every_nth(model.depth, 2));
  also_inexact(model, "softcaps of scores and logits");
  return built(model);
}

/// Rotary positions pair neighbouring columns.
/// Source  modeling_helium.py of the transformers library
Model read_helium(Config& config) {
  ModelDraft model = llama_with_biases(config);
  if (model.attention.query_columns() != model.hidden) {
    config.fail("head_dim", "makes heads that are not as wide as the layers together");
  }
  model.attention.output_bias = false;
  also_inexact(model, "rotary embedding on interleaved pairs");
  return built(model);
}

/// Layers 0, 4, 8 ... attend to all tokens, the others to a window, if the file does not list them.
/// Source  FAIR CodeGen 2025, arXiv 2510.02387; CwmConfig of the transformers library
Model read_cwm(Config& config) {
  ModelDraft model = llama_with_biases(config);
  std::vector<bool> usual;
  for (std::int64_t i = 0; i < model.depth; ++i) usual.push_back(i % 4 == 0);
  read_window(config, model, usual);
  return built(model);
}

/// Layers have a window where `layer_types` says so, all of them if it says nothing.
/// Source  MinistralForCausalLM of the transformers library
Model read_ministral(Config& config) {
  ModelDraft model = llama_with_biases(config);
  read_window(config, model, std::vector<bool>(static_cast<std::size_t>(model.depth), false));
  return built(model);
}

/// Norms of queries and keys, after their rotation.
/// Source  HunYuanDenseV1ForCausalLM of the transformers library
Model read_hunyuan_v1_dense(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.attention.qk_norm = true;
  heed(config, {"use_qk_norm", "use_cla", "cla_share_factor", "org_vocab_size", "norm_type",
                "use_rotary_pos_emb", "mask_init_id", "eod_token_id", "im_end_id", "im_newline_id",
                "im_start_id", "text_start_id", "text_end_id"});
  also_inexact(model, "norms of queries and keys after their rotation");
  return built(model);
}

/// Layer norms of 1 + weight, an MLP of two matrices with a squared relu between them.
/// Source  Parmar et al. 2024, arXiv 2402.16819; NemotronForCausalLM of the transformers library
Model read_nemotron(Config& config) {
  config.find("hidden_act");
  config.assume({{"hidden_act", "relu2"}, {"partial_rotary_factor", 0.5}});
  ModelDraft model = llama_with_biases(config);
  model.mlp.gated = false;
  model.norms.kind = Norm::layer_norm;
  model.norms.bias = true;
  model.norms.offset = 1;
  return built(model);
}

/// Queries are scaled by the logarithm of their position.
/// Source  modeling_ministral3.py of the transformers library
Model read_ministral3(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.attention.window = config.size_or("sliding_window", Limits::positions, 0);
  also_inexact(model, "queries scaled by their position");
  return built(model);
}

/// `use_bias` stands for all biases; rotary positions as Helium's.
/// Source  modeling_ernie4_5.py of the transformers library
Model read_ernie4_5(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias =
      config.flag("use_bias", false);
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  also_inexact(model, "rotary embedding on interleaved pairs");
  return built(model);
}

/// Biases of the output projection have a key of their own.
/// Source  modeling_seed_oss.py of the transformers library
Model read_seed_oss(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.attention.qkv_bias = config.flag("attention_bias", true);
  model.attention.output_bias = config.flag("attention_out_bias", false);
  config.find("residual_dropout");
  return built(model);
}

/// GLM-4 9B: biases of queries, keys and values alone; rotary positions as Helium's, on half of
/// each head. Source  GLM Team 2024, arXiv 2406.12793; modeling_glm.py of the transformers library
Model read_glm(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.attention.output_bias = false;
  also_inexact(model, "rotary embedding on interleaved pairs");
  return built(model);
}

/// Norms of queries, keys and of the outputs of attention and MLP, none of their inputs. With a
/// window, every fourth layer attends to all tokens, and does not rotate.
/// Source  LG AI Research 2025, arXiv 2507.11407
Model read_exaone4(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.attention.qk_norm = true;
  const auto pattern = config.find("sliding_window_pattern");
  const bool letters = pattern && pattern->is_string();  // "LLLG"
  const std::int64_t every = letters
                                 ? std::ssize(pattern->as<std::string>())
                                 : config.positive_or("sliding_window_pattern", Limits::layers, 4);
  read_window(config, model, every_nth(model.depth, every));
  model.norms.of_outputs = true;
  if (model.attention.window > 0) also_inexact(model, "layers without rotary positions");
  return built(model);
}

/// Grouped-query attention and an MLP of two matrices, with biases, after layer norms.
/// Source  Lozhkov et al. 2024, arXiv 2402.19173; modeling_starcoder2.py of the transformers
/// library
Model read_starcoder2(Config& config) {
  ModelDraft model;
  model.embedding.positions = Positions::rotary;
  read_shape(config, model);
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.mlp.activation = config.activation("hidden_act", Activation::gelu);
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias =
      config.flag("use_bias", true);
  model.attention.window = config.size_or("sliding_window", Limits::positions, 0);
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  config.find("embedding_dropout");
  config.find("residual_dropout");
  config.find("mlp_type");   // of older files: default
  config.find("norm_type");  // of older files: layer_norm
  return built(model);
}

Model without_head(Model model) {
  const std::int64_t head =
      model.embedding.tied ? 0 : model.embedding.vocab * embedding_width(model);
  model.further.vector(-head);
  model.parameters -= head;
  model.active_parameters -= head;
  model.formula += head > 0 ? " - Vh, language model without its head" : ", language model only";
  return model;
}

/// The language model of Qwen3-VL, counted without its vision encoder and head.
/// Source  Qwen Team 2025, Qwen3-VL; Qwen3VLTextModel of the transformers library
Model read_qwen3_vl(Config& config) {
  return without_head(read_qwen3(config));
}
Model read_qwen3_vl_moe(Config& config) {
  return without_head(read_qwen3_moe(config));
}

}  // namespace orrery::models
