// Readers of dense decoders near LLaMA, Granite and Apertus: other keys, more norms, sinks, gates
// of attention, layers that run again.
#include <cmath>

#include "models/model/import/drafts.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

constexpr const char* run_again = "layers that run again are counted, not yet simulated";

/// Takes the weights of `count` norms of the hidden width out of the count.
void without_norm_weights(ModelDraft& model, std::int64_t count) {
  model.further.vector(-count * model.hidden);
  also_inexact(model, "norms without weights");
}

}  // namespace

/// Source  ExaoneConfig of the transformers library, whose class is LLaMA's
Model read_exaone(Config& config) {
  also_called(config, "num_hidden_layers", {"num_layers"});
  also_called(config, "hidden_act", {"activation_function"});
  return read_llama(config);
}

/// Biases of queries, keys and values have a key of their own.
/// Source  InternLM3Config of the transformers library, whose class is LLaMA's
Model read_internlm3(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.attention.qkv_bias = config.flag("attention_bias", config.flag("qkv_bias", false));
  model.attention.output_bias = model.mlp.bias =
      config.flag("mlp_bias", config.flag("bias", false));
  return built(model);
}

/// Source  IQuestCoderConfig of the transformers library, whose class is LLaMA's
Model read_iquestcoder(Config& config) {
  refuse_true(config, {"use_sliding_window"}, "windows are not supported for this type");
  heed(config, {"clip_qkv", "max_window_layers", "sliding_window"});
  return read_llama(config);
}

/// Granite's multipliers; with `use_post_norm` norms after both parts, too.
/// Source  HyperCLOVAXForCausalLM of the transformers library
Model read_hyperclovax(Config& config) {
  ModelDraft model = llama_with_biases(config);
  read_multipliers(config, model);
  model.norms.sandwich = config.flag("use_post_norm", true);
  return built(model);
}

/// Granite with sinks; layers 0, 4, 8 ... attend to all tokens, the others to a window.
/// Source  GraniteSWAForCausalLM of the transformers library
Model read_granite_swa(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.attention.sinks = true;
  read_window(config, model, every_nth_from_first(model.depth, 4));
  read_multipliers(config, model);
  heed(config, {"layer_rope_theta"});
  return built(model);
}

/// Apertus, whose head may have fewer columns than its table has rows.
/// Source  Apertus1p5TextForCausalLM of the transformers library
Model read_apertus1p5(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.mlp.gated = model.mlp.bias = false;
  model.attention.qk_norm = true;
  const auto function = config.find("hidden_act");
  if (function && function->as<std::string>() == "xielu") {
    model.further.vector(2 * model.depth);
  }
  const std::int64_t outputs =
      config.positive_or("output_vocab_size", model.embedding.vocab, model.embedding.vocab);
  if (outputs == model.embedding.vocab) return built(model);
  if (model.embedding.tied) {
    config.fail("output_vocab_size", "is not supported with tie_word_embeddings");
  }
  const std::int64_t absent = (model.embedding.vocab - outputs) * model.hidden;
  model.further.add({-absent, -absent, -absent});
  also_inexact(model, "a head of fewer columns than the table has rows");
  return built(model);
}

/// A mask that values choose (dt_proj and A), and a weight for each column of the residual stream.
/// With `is_moe` a layer has an MLP and E experts of one hidden column each, chosen by two sets of
/// root E keys:
///   3 h f + 2 h root E + 2 E h
/// Source  DogeForCausalLM of the transformers library
Model read_doge(Config& config) {
  constexpr std::int64_t most_experts = 1 << 24;
  ModelDraft model = llama_with_biases(config);
  model.attention.qk_norm = true;
  const std::int64_t k = model.attention.kv_heads, keys = model.attention.key_columns();
  model.further.matrix(model.depth * keys * k);
  model.further.vector(model.depth * (k + (model.attention.qkv_bias ? k : 0) + 2 * model.hidden));
  heed(config, {"keep_window_size", "num_experts", "num_experts_per_tok", "norm_topk_prob"});
  model.attention.window = config.size_or("sliding_window", Limits::positions, 0);
  also_inexact(model, "a mask chosen by values, and scaled residuals");
  if (!config.flag("is_moe", false)) return built(model);
  const std::int64_t experts = config.size("num_experts", most_experts), h = model.hidden;
  const auto root = static_cast<std::int64_t>(std::floor(std::sqrt(static_cast<double>(experts))));
  CountedPart part{"experts of one column"};
  for (const LayerMatrix& each : matrices_of(model.mlp, h, "")) part.count.add(each);
  part.count.matrix(2 * h * root);
  part.count.experts(experts, config.size("num_experts_per_tok", experts), 2 * h);
  for (std::int64_t i = 0; i < model.depth; ++i) model.layers.push_back({model.attention, part});
  model.not_simulated = "experts of one column are counted, not yet simulated";
  return built(model);
}

/// Normalised vectors in place of norms (nGPT); gated attention; the layers in the middle run
/// `n_recurrent_loops` times. Newer files list attention and MLP as layers of their own.
/// Source  DoryForCausalLM of the transformers library
Model read_dory(Config& config) {
  ModelDraft model = llama_with_biases(config);
  const auto types = config.find("layer_types");
  if (types && model.depth % 2 == 0) {
    for (const Node& each : types->elements()) {
      if (each.as<std::string>() != "mlp") continue;
      model.depth /= 2;
      break;
    }
  }
  model.attention.gated = true;
  const std::int64_t q = model.attention.query_columns();
  const std::int64_t absent = model.attention.qkv_bias ? q : 0;  // of the gate's bias
  model.further.vector(model.depth * (2 * q + 2 * model.mlp.width + 2 * model.hidden - absent) +
                       model.embedding.vocab);
  without_norm_weights(model, 2 * model.depth + 1);
  heed(config, {"n_input_layers", "n_output_layers", "n_recurrent_layers", "n_recurrent_loops",
                "recurrent_kv_cache_mode", "ngpt_alpha_init", "sliding_window"});
  model.not_simulated = run_again;
  return built(model);
}

/// Two stacks that run in turns; gated attention, norms without weights, as many keys as queries.
/// Source  HrmTextForCausalLM of the transformers library
Model read_hrm(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.depth = 2 * config.positive_or("num_layers_per_stack", Limits::layers, model.depth);
  model.attention.kv_heads = model.attention.heads;
  model.attention.gated = true;
  model.further.vector(model.hidden);  // what the lower stack starts from
  without_norm_weights(model, 2 * model.depth + 1);
  heed(config, {"H_cycles", "L_cycles", "L_bp_cycles", "embedding_scale", "prefix_lm"});
  model.not_simulated = run_again;
  return built(model);
}

/// An encoder of LLaMA's layers; its head narrows and widens again before the vocabulary.
/// Source  UltrabertForMaskedLM of the transformers library
Model read_ultrabert(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.family = Family::bert;
  model.causal = false;
  model.further.matrix(2 * model.hidden * config.size("prediction_head_size", Limits::hidden));
  heed(config, {"sliding_window", "layer_types", "attention_windows", "rope_theta"});
  also_inexact(model, "windows on both sides, priced as attention to all tokens; a narrower head");
  return built(model);
}

}  // namespace orrery::models
