// Readers of mixture-of-experts models whose attention is that of LLaMA or near it: Qwen 2, OLMo,
// GLM 4.5, EXAONE, ERNIE, Trinity, Phi, Granite, MiMo V2.
#include <algorithm>

#include "models/model/import/drafts.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
ModelDraft with_experts(Config& config, std::initializer_list<std::string_view> count,
                        std::string_view width) {
  ModelDraft model = llama_like(config);
  model.attention.qkv_bias = model.attention.output_bias = config.flag("attention_bias", false);
  read_expert_counts(config, model, count);
  model.mlp.width = config.size(width, Limits::expert_hidden);
  model.experts.routing.normalised = config.flag("norm_topk_prob", true);
  return model;
}

void share_experts(ModelDraft& model, std::int64_t experts) {
  model.experts.shared_width = experts * model.mlp.width;
}

void sigmoid_routing(Config& config, ModelDraft& model) {
  model.experts.routing.score = Routing::Score::sigmoid;
  model.experts.routing.corrected = true;
  for (const char* key :
       {"n_group", "topk_group", "topk_method", "scoring_func", "route_scale", "route_norm"}) {
    config.find(key);
  }
  also_inexact(model, "groups and scale of a sigmoid router");
}

void read_dense_layers(Config& config, ModelDraft& model, std::int64_t first) {
  model.dense = dense_layers(model.depth, first, 1);
  if (const auto listed = config.kinds("mlp_layer_types", model.depth, {"dense", "sparse"})) {
    for (std::size_t i = 0; i < listed->size(); ++i) model.dense[i] = (*listed)[i] == 0;
  }
  const bool any = std::ranges::any_of(model.dense, [](bool dense) { return dense; });
  if (any) model.dense_width = config.size("intermediate_size", Limits::ffn_hidden);
  config.find("intermediate_size");
}

std::int64_t first_few(Config& config, const ModelDraft& model) {
  return std::min(model.depth, config.size_or("first_k_dense_replace", Limits::layers, 0));
}

/// Source  Muennighoff et al. 2024, arXiv 2409.02060; OlmoeForCausalLM and FlexOlmoForCausalLM of
///         the transformers library
Model read_olmoe(Config& config) {
  ModelDraft model =
      with_experts(config, {"num_experts", "num_local_experts"}, "intermediate_size");
  config.find("clip_qkv");
  norm_all_heads(model);
  model.norms.of_outputs = config.type() == "flex_olmo";
  return built(model);
}

/// Layer norms; the router is a sampler of its own (SparseMixer).
/// Source  Abdin et al. 2024, arXiv 2404.14219; PhimoeForCausalLM of the transformers library
Model read_phimoe(Config& config) {
  ModelDraft model =
      with_experts(config, {"num_local_experts", "num_experts"}, "intermediate_size");
  model.norms.kind = Norm::layer_norm;
  model.head.bias = config.flag("lm_head_bias", false);
  model.attention.window = config.size_or("sliding_window", Limits::positions, 0);
  config.find("input_jitter_noise");
  also_inexact(model, "a router that samples (SparseMixer)");
  return built(model);
}

/// Biases of queries, keys and values; shared experts behind a gate of one column.
/// Source  Yang et al. 2024, arXiv 2407.10671; Qwen2MoeForCausalLM of the transformers library
Model read_qwen2_moe(Config& config) {
  ModelDraft model =
      with_experts(config, {"num_experts", "num_local_experts"}, "moe_intermediate_size");
  model = with_optional_window(config, model);
  model.attention.qkv_bias = config.flag("qkv_bias", true);
  model.attention.output_bias = false;
  model.experts.shared_width =
      config.size("shared_expert_intermediate_size", Limits::expert_hidden);
  model.dense = layers_without_experts(config, model);
  model.dense_width = config.size("intermediate_size", Limits::ffn_hidden);
  model.experts.shared_gate = true;
  return built(model);
}

/// Granite's multipliers, and shared experts.
/// Source  GraniteMoeSharedForCausalLM of the transformers library
Model read_granitemoeshared(Config& config) {
  ModelDraft model =
      with_experts(config, {"num_local_experts", "num_experts"}, "intermediate_size");
  model.experts.shared_width = config.size_or("shared_intermediate_size", Limits::expert_hidden, 0);
  read_multipliers(config, model);
  return built(model);
}

/// Attention without a bias of its output; experts as DeepSeek-V3's. A head is as wide as the
/// hidden columns allow if the file does not say.
/// Source  GLM Team 2025, arXiv 2508.06471; Glm4MoeForCausalLM and SolarOpenForCausalLM of the
///         transformers library
ModelDraft glm4_moe_like(Config& config) {
  assume_head_dim(config);
  ModelDraft model =
      with_experts(config, {"n_routed_experts", "num_local_experts"}, "moe_intermediate_size");
  sigmoid_routing(config, model);
  model.attention.output_bias = false;
  model.attention.qk_norm = config.flag("use_qk_norm", false);
  model.prediction_layers = config.size_or("num_nextn_predict_layers", Limits::layers, 0);
  share_experts(model, config.size_or("n_shared_experts", Limits::experts, 0));
  const bool mixed = config.type() != "solar_open";
  const std::int64_t first = first_few(config, model);
  if (mixed) read_dense_layers(config, model, first);
  config.find("intermediate_size");
  return model;
}
Model read_glm4_moe(Config& config) {
  return built(glm4_moe_like(config));
}

/// EXAONE 4 with experts as DeepSeek-V3's.
/// Source  LG AI Research 2026, K-EXAONE; ExaoneMoeForCausalLM of the transformers library
Model read_exaone_moe(Config& config) {
  ModelDraft model =
      with_experts(config, {"num_experts", "num_local_experts"}, "moe_intermediate_size");
  sigmoid_routing(config, model);
  config.find("attention_bias");
  model.attention.qkv_bias = model.attention.output_bias = false;
  model.attention.qk_norm = true;
  model.prediction_layers = config.size_or("num_nextn_predict_layers", Limits::layers, 0);
  share_experts(model, config.size_or("num_shared_experts", Limits::experts, 0));
  read_dense_layers(config, model, first_few(config, model));
  const auto pattern = config.find("sliding_window_pattern");
  const bool letters = pattern && pattern->is_string();  // "LLLG"
  const std::int64_t every = letters
                                 ? std::ssize(pattern->as<std::string>())
                                 : config.positive_or("sliding_window_pattern", Limits::layers, 4);
  read_window(config, model, every_nth(model.depth, every));
  return built(model);
}

/// Gated attention between two norms, and experts with a bias that counts as a parameter.
/// Source  AfmoeForCausalLM of the transformers library
Model read_afmoe(Config& config) {
  ModelDraft model =
      with_experts(config, {"num_experts", "num_local_experts"}, "moe_intermediate_size");
  sigmoid_routing(config, model);
  for (const char* key : {"mup_enabled", "num_expert_groups", "num_limited_groups", "score_func",
                          "load_balance_coeff", "use_grouped_mm"}) {
    config.find(key);
  }
  model.attention.qk_norm = model.norms.sandwich = true;
  share_experts(model, config.size_or("num_shared_experts", Limits::experts, 0));
  read_dense_layers(config, model,
                    std::min(model.depth, config.size_or("num_dense_layers", Limits::layers, 0)));
  const std::int64_t every = config.positive_or("global_attn_every_n_layers", Limits::layers, 4);
  read_window(config, model, every_nth(model.depth, every));
  model.attention.gated = true;
  model.further.total += std::ranges::count(model.dense, false) * model.experts.count;
  also_inexact(model, "layers without rotary positions");
  return built(model);
}

/// Experts on every n-th of the layers from one to another; their bias counts as a parameter.
/// Source  Ernie4_5_MoeForCausalLM of the transformers library
Model read_ernie4_5_moe(Config& config) {
  config.assume({{"num_experts_per_tok", config.size("moe_k", Limits::experts)}});
  ModelDraft model =
      with_experts(config, {"moe_num_experts", "num_local_experts"}, "moe_intermediate_size");
  if (config.flag("use_bias", false)) {
    config.fail("use_bias", "biases are not supported for this type; expected false");
  }
  config.find("moe_norm_min");
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  share_experts(model, config.size_or("moe_num_shared_experts", Limits::experts, 0));
  const std::int64_t every = config.positive_or("moe_layer_interval", Limits::layers, 1);
  const std::int64_t first = config.size_or("moe_layer_start_index", Limits::layers, 1);
  const auto end = config.find("moe_layer_end_index");
  const std::int64_t stated = end ? end->integer(-1, Limits::layers) : -1;
  const std::int64_t last = stated < 0 ? model.depth - 1 : stated;
  for (std::int64_t i = 0; i < model.depth; ++i) {
    model.dense.push_back((i + 1) % every != 0 || i < first || i > last);
  }
  model.dense_width = config.size("intermediate_size", Limits::ffn_hidden);
  model.further.total += std::ranges::count(model.dense, false) * model.experts.count;
  also_inexact(model, "rotary embedding on interleaved pairs");
  return built(model);
}

/// Layers with a window have twice the key-value heads, and sinks.
/// Source  Xiaomi 2026, MiMo-V2-Flash; MiMoV2FlashForCausalLM of the transformers library
Model read_mimo_v2_flash(Config& config) {
  ModelDraft model =
      with_experts(config, {"n_routed_experts", "num_local_experts"}, "moe_intermediate_size");
  sigmoid_routing(config, model);
  config.find("attention_value_scale");
  model.attention.output_bias = false;
  model.attention.value_dim = config.size("v_head_dim", Limits::head_dim);
  read_dense_layers(config, model, 1);
  std::vector<bool> usual = every_nth(model.depth, 6);
  usual.front() = true;
  read_window(config, model, usual);
  for (std::int64_t i = 0; i < model.depth; ++i) {
    const auto at = static_cast<std::size_t>(i);
    Layer layer{model.attention, model.mlp};
    auto& attention = std::get<AttentionPart>(layer.mixer);
    if (model.full.empty() || model.full[at]) {
      attention.window = 0;
    } else {
      attention.kv_heads *= 2;
      attention.sinks = true;
    }
    if (model.dense[at]) {
      std::get<MlpPart>(layer.channel).width = model.dense_width;
    } else {
      model.experts.mlp = model.mlp;
      layer.channel = model.experts;
    }
    model.layers.push_back(layer);
  }
  return built(model);
}

/// Attention, too, has experts: pairs of query and output projections around common keys and
/// values. Of E experts and widths q of the chosen heads and k of keys and values together:
///   h k + h E + h + E (h q + q h)
/// Source  Shen et al. 2024, arXiv 2404.07413; JetMoeForCausalLM of the transformers library
Model read_jetmoe(Config& config) {
  config.assume({{"head_dim", config.size("kv_channels", Limits::head_dim)},
                 {"hidden_act", "silu"},
                 {"num_attention_heads", config.size("num_key_value_heads", Limits::heads) *
                                             config.size("num_experts_per_tok", Limits::experts)}});
  ModelDraft model =
      with_experts(config, {"num_local_experts", "num_experts"}, "intermediate_size");
  config.find("activation_function");
  config.find("aux_loss_coef");
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  const std::int64_t h = model.hidden, keys = model.attention.key_columns();
  model.experts.mlp = model.mlp;
  CountedPart mixer{"attention with experts"};
  mixer.count.matrix(h * 2 * keys + h * model.experts.count);
  mixer.count.vector(h);
  mixer.count.experts(model.experts.count, model.experts.per_token, 2 * h * keys);
  for (std::int64_t i = 0; i < model.depth; ++i) model.layers.push_back({mixer, model.experts});
  model.further.vector(model.depth * h);  // bias after the experts
  model.not_simulated = "experts in attention are counted, not yet simulated";
  return built(model);
}

}  // namespace orrery::models
