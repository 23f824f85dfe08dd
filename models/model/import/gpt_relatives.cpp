// Readers of decoders of the time of GPT-2 and GPT-3 with other keys, positions or biases.
#include <algorithm>
#include <cmath>

#include "models/model/import/drafts.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {

/// GPT-2 with one key-value head, unless `multi_query` is false.
/// Source  GPTBigCodeForCausalLM of the transformers library
Model read_gpt_bigcode(Config& config) {
  ModelDraft model = read_gpt_shape(config);
  if (config.flag("multi_query", true)) model.attention.kv_heads = 1;
  refuse_true(config, {"add_cross_attention"}, "cross-attention is not supported; expected false");
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  heed(config,
       {"num_key_value_heads", "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32",
        "inference_runner", "max_batch_size", "max_sequence_length", "pad_key_length",
        "pre_allocate_kv_cache", "validate_runner_input"});
  return built(model);
}

namespace {

/// Layers without the window: by `attention_layers`, or by `attention_types`, which states patterns
/// and how often each is repeated.
void read_alternation(Config& config, ModelDraft& model) {
  const auto types = config.find("attention_types");
  const auto listed = config.find("attention_layers");
  if (!listed && !types) return;
  model.full.clear();
  const auto add = [&](const Node& words) {
    for (const Node& each : words.elements()) {
      model.full.push_back(each.one_of({"global", "local"}) == 0);
    }
  };
  if (listed) {
    add(*listed);
  } else {
    for (const Node& each : types->elements()) {
      const std::int64_t times = each.at(1).integer(1, Limits::layers);
      for (std::int64_t i = 0; i < times; ++i) add(each.at(0));
    }
  }
  if (std::ssize(model.full) != model.depth) {
    (listed ? listed : types)->fail("expected an entry for each layer");
  }
}

}  // namespace

/// GPT-2 of which every second layer attends to a window; queries, keys and values have no biases.
/// Source  GPTNeoForCausalLM of the transformers library
Model read_gpt_neo(Config& config) {
  ModelDraft model;
  model.depth = config.size({"num_layers", "num_hidden_layers"}, Limits::layers);
  model.hidden = config.size("hidden_size", Limits::hidden);
  model.attention.heads = config.size({"num_heads", "num_attention_heads"}, Limits::heads);
  model.attention.qkv_bias = false;
  model.embedding.vocab = config.size("vocab_size", Limits::vocab);
  model.embedding.max_positions = config.size("max_position_embeddings", Limits::positions);
  model.mlp.width = config.positive_or("intermediate_size", Limits::ffn_hidden, 4 * model.hidden);
  model.mlp.activation = config.activation("activation_function", Activation::gelu);
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  fill_heads(config, model);
  model.attention.window = config.size("window_size", Limits::positions);
  model.full = every_nth_from_first(model.depth, 2);
  read_alternation(config, model);
  heed(config, {"embed_dropout", "resid_dropout"});
  also_inexact(model, "scores that are not divided by the root of the head's width");
  return built(model);
}

/// Norms after attention and MLP, on the residual stream; none at the end.
/// Source  Radford et al. 2018, "Improving language understanding by generative pre-training";
///         OpenAIGPTLMHeadModel of the transformers library
Model read_openai_gpt(Config& config) {
  also_called(config, "activation_function", {"afn"});
  ModelDraft model = read_gpt_shape(config);
  model.norms.after_residual = true;
  model.norms.final = false;
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  heed(config, {"afn", "predict_special_tokens"});
  return built(model);
}

/// Rotary positions; no biases but of norms and of the last layer's attention.
/// Source  GPTNeoXJapaneseForCausalLM of the transformers library
Model read_gpt_neox_japanese(Config& config) {
  ModelDraft model;
  model.embedding.positions = Positions::rotary;
  read_shape(config, model);
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias = false;
  model.mlp.width = model.hidden * config.size("intermediate_multiple_size", 1 << 8);
  model.mlp.activation = config.activation("hidden_act", Activation::gelu);
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  model.further.vector(model.hidden);
  also_inexact(model, "a bias of the last layer's attention");
  return built(model);
}

namespace {

void scale_embedding(Config& config, ModelDraft& model) {
  if (!config.flag("scale_embedding", true)) return;
  model.embedding.multiplier = std::sqrt(static_cast<double>(model.hidden));
}

}  // namespace

/// Sinusoidal positions. Source  Lin et al. 2022, arXiv 2112.10668; XGLMForCausalLM of the
/// transformers library
Model read_xglm(Config& config) {
  also_called(config, "num_hidden_layers", {"num_layers"});
  also_called(config, "hidden_size", {"d_model"});
  also_called(config, "num_attention_heads", {"attention_heads"});
  ModelDraft model;
  model.embedding.positions = Positions::none;
  read_shape(config, model);
  refuse_true(config, {"add_cross_attention"}, "cross-attention is not supported; expected false");
  model.mlp.width = config.size("ffn_dim", Limits::ffn_hidden);
  model.mlp.activation = config.activation("activation_function", Activation::gelu_erf);
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  heed(config, {"decoder_start_token_id"});
  scale_embedding(config, model);
  also_inexact(model, "sinusoidal positions");
  return built(model);
}

/// Two rows of positions more than stated. Source  Luo et al. 2022, arXiv 2210.10341;
/// BioGptForCausalLM of the transformers library
Model read_biogpt(Config& config) {
  ModelDraft model;
  read_shape(config, model);
  model.embedding.extra_position_rows = 2;
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.mlp.activation = config.activation("hidden_act", Activation::gelu_erf);
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  scale_embedding(config, model);
  return built(model);
}

/// Sinusoidal positions, a head with a bias. Source  Keskar et al. 2019, arXiv 1909.05858;
/// CTRLLMHeadModel of the transformers library
Model read_ctrl(Config& config) {
  config.assume({{"activation_function", "relu"}});
  ModelDraft model = read_gpt_shape(config);
  model.embedding.positions = Positions::none;
  model.mlp.width = config.size("dff", Limits::ffn_hidden);
  model.head.bias = true;
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  also_inexact(model, "sinusoidal positions");
  return built(model);
}

/// Prompts in front of the text have rows of the table of their own, as do segments; a bias of
/// scores by distance and by the pair of segments; the head is its own.
///   prompts length h + segments h + H (s s + buckets)
/// Source  CpmAntForCausalLM of the transformers library
Model read_cpmant(Config& config) {
  constexpr std::int64_t most = 1 << 16;
  config.assume({{"head_dim", config.size("dim_head", Limits::head_dim)},
                 {"intermediate_size", config.size("dim_ff", Limits::ffn_hidden)}});
  ModelDraft model = llama_like(config);
  model.embedding.positions = Positions::none;
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.mlp.activation = Activation::gelu_erf;
  model.embedding.tied = false;  // whatever the file says
  const std::int64_t segments = config.size("segment_types", most);
  model.further.vector(
      (config.size("prompt_types", most) * config.size("prompt_length", most) + segments) *
          model.hidden +
      model.attention.heads *
          (segments * segments + config.size("position_bias_num_buckets", most)));
  heed(config, {"position_bias_max_distance", "dropout_p", "eps", "mask_modules"});
  also_inexact(model, "biases of scores by distance and segment");
  return built(model);
}

}  // namespace orrery::models
