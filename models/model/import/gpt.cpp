// Readers of GPT-2 and its relatives: an MLP of two matrices, layer norms, biases.
#include "models/model/import/drafts.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
ModelDraft read_gpt_shape(Config& config) {
  ModelDraft model;
  model.depth = config.size("n_layer", Limits::layers);
  model.hidden = config.size("n_embd", Limits::hidden);
  model.attention.heads = config.size("n_head", Limits::heads);
  model.embedding.vocab = config.size("vocab_size", Limits::vocab);
  model.embedding.max_positions = config.size({"n_positions", "n_ctx"}, Limits::positions);
  model.mlp.width = config.positive_or("n_inner", Limits::ffn_hidden, 4 * model.hidden);
  model.mlp.activation = config.activation("activation_function", Activation::gelu);
  fill_heads(config, model);
  return model;
}

Model read_gpt2(Config& config) {
  ModelDraft model = read_gpt_shape(config);
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  return built(model);
}

/// Parallel block after one shared norm: attention without biases, an MLP with them; a head with
/// bias.
Model read_gptj(Config& config) {
  ModelDraft model = read_gpt_shape(config);
  model.embedding.positions = Positions::rotary;
  model.attention.qkv_bias = false;
  model.attention.output_bias = false;
  model.parallel_block = true;
  model.norms.shared = true;
  model.head.bias = true;
  model.embedding.tied = config.flag("tie_word_embeddings", false);
  return built(model);
}

Model read_gpt_neox(Config& config) {
  ModelDraft model;
  model.embedding.positions = Positions::rotary;
  read_shape(config, model);
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.mlp.activation = config.activation("hidden_act", Activation::gelu);
  model.attention.qkv_bias = config.flag("attention_bias", true);
  model.attention.output_bias = model.attention.qkv_bias;
  model.parallel_block = config.flag("use_parallel_residual", true);
  model.embedding.tied = config.flag("tie_word_embeddings", false);
  return built(model);
}

/// The position table starts at row 2. `do_layer_norm_before: false` drops the final norm.
/// Embeddings of width `word_embed_proj_dim` go through project_in, and project_out precedes the
/// head.
Model read_opt(Config& config) {
  ModelDraft model;
  read_shape(config, model);
  model.embedding.extra_position_rows = 2;
  model.mlp.width = config.size("ffn_dim", Limits::ffn_hidden);
  model.mlp.activation = config.activation("activation_function", Activation::relu);
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  const bool norm_first = config.flag("do_layer_norm_before", true);
  const bool removed = config.flag("_remove_final_layer_norm", false);
  model.norms.final = norm_first && !removed;
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias =
      config.flag("enable_bias", true);
  if (!config.flag("layer_norm_elementwise_affine", true)) {
    config.fail("layer_norm_elementwise_affine", "norms without weights are not supported");
  }
  const std::int64_t width =
      config.positive_or("word_embed_proj_dim", Limits::hidden, model.hidden);
  if (width != model.hidden) model.embedding.width = width;
  return built(model);
}

/// ALiBi, a norm after the embedding, an MLP of 4 h unless `n_inner` says otherwise.
Model read_bloom(Config& config) {
  ModelDraft model;
  model.embedding.positions = Positions::alibi;
  model.norms.embedding = true;
  model.depth = config.size({"n_layer", "num_hidden_layers"}, Limits::layers);
  model.hidden = config.size({"hidden_size", "n_embed"}, Limits::hidden);
  model.attention.heads = config.size({"num_attention_heads", "n_head"}, Limits::heads);
  model.embedding.vocab = config.size("vocab_size", Limits::vocab);
  model.embedding.max_positions = config.size_or("seq_length", Limits::positions, 0);
  model.mlp.width = config.positive_or("n_inner", Limits::ffn_hidden, 4 * model.hidden);
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  fill_heads(config, model);
  return built(model);
}

/// Parallel block. The new decoder (40B, 180B) has two norms and grouped-query attention; the old
/// (7B) one norm and one key-value head. No learned positions, no biases in linear layers.
Model read_falcon(Config& config) {
  ModelDraft model;
  const bool grouped = config.flag("new_decoder_architecture", false);
  const bool bias = config.flag("bias", false);
  model.embedding.positions = config.flag("alibi", false) ? Positions::alibi : Positions::rotary;
  model.depth = config.size({"num_hidden_layers", "n_layer"}, Limits::layers);
  model.hidden = config.size("hidden_size", Limits::hidden);
  model.attention.heads = config.size({"num_attention_heads", "n_head"}, Limits::heads);
  const bool one_key = config.flag("multi_query", true) && !grouped;
  model.attention.kv_heads =
      one_key ? 1 : config.positive_or("num_kv_heads", Limits::heads, model.attention.heads);
  model.embedding.vocab = config.size("vocab_size", Limits::vocab);
  model.embedding.max_positions =
      config.size_or("max_position_embeddings", Limits::positions, 2048);
  model.mlp.width = config.positive_or("ffn_hidden_size", Limits::ffn_hidden, 4 * model.hidden);
  model.mlp.activation = config.activation("activation", Activation::gelu);
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias = bias;
  model.parallel_block = config.flag("parallel_attn", true) || grouped;
  model.norms.shared = model.parallel_block && !grouped;
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  fill_heads(config, model);
  return built(model);
}

/// ALiBi; `no_bias` removes the biases of linear layers and norms alike. The transformers library's
/// MPT has no learned positions, whatever the file says.
Model read_mpt(Config& config) {
  ModelDraft model;
  const bool bias = !config.flag("no_bias", true);
  model.embedding.positions = Positions::alibi;
  model.depth = config.size("n_layers", Limits::layers);
  model.hidden = config.size("d_model", Limits::hidden);
  model.attention.heads = config.size("n_heads", Limits::heads);
  model.embedding.vocab = config.size("vocab_size", Limits::vocab);
  model.embedding.max_positions = config.positive_or("max_seq_len", Limits::positions, 2048);
  const std::int64_t expansion = config.positive_or("expansion_ratio", 64, 4);
  model.mlp.width = expansion * model.hidden;
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias = model.norms.bias = bias;
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  const auto attention = config.find("attn_config");
  const auto keys = attention ? attention->find("kv_n_heads") : std::nullopt;
  model.attention.kv_heads = keys ? keys->integer(1, Limits::heads) : model.attention.heads;
  fill_heads(config, model);
  return built(model);
}

/// Parallel block after one shared norm; biases everywhere, also on the head.
Model read_phi(Config& config) {
  ModelDraft model;
  model.embedding.positions = Positions::rotary;
  model.parallel_block = true;
  model.norms.shared = true;
  model.head.bias = true;
  read_shape(config, model);
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.mlp.activation = config.activation("hidden_act", Activation::gelu);
  model.embedding.tied = config.flag("tie_word_embeddings", false);
  if (config.flag("qk_layernorm", false)) {
    config.fail("qk_layernorm", "norms of queries and keys are not supported for this type");
  }
  return built(model);
}

}  // namespace orrery::models
