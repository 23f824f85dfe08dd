// Readers of mixture-of-experts models since 2025 with attention over heads: Aria, Cohere, Granite,
// Hunyuan, Laguna, Mellum, Sarvam, Beam, dots.llm1, DBRX, Flint, Kolibri, Lara, MiniMax-M3,
// Step 3.5.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/model/import/drafts.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

constexpr const char* some_without_rotation = "layers without rotary positions";
constexpr const char* one_more = "norms of 1 + weight";
constexpr const char* norms_after_rotation = "norms of queries and keys after their rotation";

void set_heads(Layer& layer, std::int64_t heads) {
  std::get<AttentionPart>(layer.mixer).heads = heads;
}

/// A gate of attention's output: one for each head, or as wide as the queries.
void read_gating(Config& config, ModelDraft& model, std::int64_t heads_of_all_layers) {
  const auto gating = config.find("gating");
  const bool of_heads =
      !gating ||
      (gating->json().is_boolean() ? gating->as<bool>() : gating->as<std::string>() == "per-head");
  model.attention.gated = !of_heads;
  if (!of_heads) return;
  model.further.matrix(model.hidden * heads_of_all_layers);
  also_inexact(model, "a gate for each head");
}

}  // namespace

/// The text model: experts on every layer, shared ones among them.
/// Source  AriaTextForCausalLM of the transformers library
Model read_aria(Config& config) {
  config.assume({{"num_experts_per_tok", config.size("moe_topk", Limits::experts)}});
  ModelDraft model = with_experts(config, {"moe_num_experts"}, "intermediate_size");
  refuse_biases(config, {"mlp_bias"});
  share_experts(model, config.size("moe_num_shared_experts", Limits::experts));
  return built(model);
}

/// Cohere 2 with experts; the first layers may have an MLP of another width and windows of another
/// pattern. With `rms_norm_eps` norms are RMS norms.
/// Source  Cohere2MoeForCausalLM of the transformers library
Model read_cohere2_moe(Config& config) {
  ModelDraft model = cohere_like(config);
  if (config.find("rms_norm_eps")) model.norms.kind = Norm::rms_norm;
  read_expert_counts(config, model, {"num_experts", "num_local_experts"});
  model.experts.routing.normalised = config.flag("norm_topk_prob", true);
  refuse_biases(config, {"mlp_bias"});
  share_experts(model, config.size_or("num_shared_experts", Limits::experts, 0));
  const std::int64_t first = first_few(config, model);
  read_dense_layers(config, model, first);
  model.dense_width =
      config.positive_or("prefix_dense_intermediate_size", Limits::ffn_hidden, model.mlp.width);
  const std::int64_t every = config.positive_or("sliding_window_pattern", Limits::layers, 4);
  const std::int64_t before =
      config.positive_or("prefix_dense_sliding_window_pattern", Limits::layers, 1);
  std::vector<bool> usual = every_nth(first, before);
  for (const bool full : every_nth(model.depth - first, every)) usual.push_back(full);
  read_window(config, model, usual);
  heed(config, {"expert_selection_fn", "shared_expert_combination_strategy"});
  return built(model);
}

/// Granite's experts with sinks; layers 0, 4, 8 ... attend to all tokens, the others to a window.
/// Source  GraniteMoeSWAForCausalLM of the transformers library
Model read_granitemoe_swa(Config& config) {
  ModelDraft model =
      with_experts(config, {"num_local_experts", "num_experts"}, "intermediate_size");
  model.experts.shared_width = config.size_or("shared_intermediate_size", Limits::expert_hidden, 0);
  model.attention.sinks = true;
  read_window(config, model, every_nth_from_first(model.depth, 4));
  read_multipliers(config, model);
  heed(config, {"layer_rope_theta"});
  return built(model);
}

/// Source  HYV3ForCausalLM of the transformers library
Model read_hy_v3(Config& config) {
  ModelDraft model =
      with_experts(config, {"num_experts", "num_local_experts"}, "moe_intermediate_size");
  sigmoid_routing(config, model);
  refuse_biases(config, {"mlp_bias"});
  model.attention.qk_norm = true;
  share_experts(model, config.size("num_shared_experts", Limits::experts));
  read_dense_layers(config, model, 1);
  heed(config, {"router_scaling_factor", "enable_moe_fp32_combine"});
  return built(model);
}

/// Layers differ in their heads; attention's output has a gate, and the router a bias that counts
/// as a parameter. Source  LagunaForCausalLM of the transformers library
Model read_laguna(Config& config) {
  ModelDraft model =
      with_experts(config, {"num_experts", "num_local_experts"}, "moe_intermediate_size");
  sigmoid_routing(config, model);
  model.attention.qk_norm = true;
  model.experts.shared_width =
      config.size("shared_expert_intermediate_size", Limits::expert_hidden);
  read_dense_layers(config, model, 1);
  read_window(config, model, std::vector<bool>(static_cast<std::size_t>(model.depth), true));
  std::vector<std::int64_t> heads(static_cast<std::size_t>(model.depth), model.attention.heads);
  if (const auto listed = config.find("num_attention_heads_per_layer")) {
    heads.clear();
    for (const Node& each : listed->elements()) {
      heads.push_back(each.integer(1, Limits::heads));
      if (heads.back() % model.attention.kv_heads != 0) {
        each.fail("is no multiple of num_key_value_heads");
      }
    }
    if (std::ssize(heads) != model.depth) listed->fail("expected an entry for each layer");
  }
  std::int64_t all_heads = 0;
  for (const std::int64_t each : heads) all_heads += each;
  read_gating(config, model, all_heads);
  model.further.total += layers_with_experts(model) * model.experts.count;
  heed(config, {"moe_routed_scaling_factor", "moe_apply_router_weight_on_input",
                "moe_router_logit_softcapping"});
  vary_layers(model, [&](std::int64_t i, Layer& layer) {
    set_heads(layer, heads[static_cast<std::size_t>(i)]);
  });
  return built(model);
}

/// Norms of queries and keys; layers have a window where `layer_types` says so. Counted without
/// multi-token-prediction modules. Source  MellumForCausalLM of the transformers library
Model read_mellum(Config& config) {
  ModelDraft model =
      with_experts(config, {"num_local_experts", "num_experts"}, "moe_intermediate_size");
  model.attention.qk_norm = true;
  read_dense_layers(config, model, 0);
  read_window(config, model, std::vector<bool>(static_cast<std::size_t>(model.depth), true));
  heed(config, {"mtp_layer_types", "mtp_mlp_layer_types"});
  if (model.attention.window > 0) {
    also_inexact(model, "a rotary base of their own for layers with a window");
  }
  return without_prediction(config, built(model), {"num_nextn_predict_layers", "num_mtp_layers"});
}

/// GLM-4.5's layers with other keys.
/// Source  SarvamMoEConfig of the transformers library, whose class is GLM-4.5's
Model read_sarvam_moe(Config& config) {
  also_called(config, "n_routed_experts", {"num_experts"});
  also_called(config, "n_shared_experts", {"num_shared_experts"});
  also_called(config, "attention_bias", {"use_qkv_bias"});
  return built(glm4_moe_like(config));
}

/// Attention with a gate as wide as its output and a bias of it for each head, between two norms.
/// Source  BeamForCausalLM of the transformers library
Model read_beam(Config& config) {
  ModelDraft model =
      with_experts(config, {"num_experts", "num_local_experts"}, "moe_intermediate_size");
  sigmoid_routing(config, model);
  model.attention.qk_norm = model.attention.gated = model.norms.sandwich = true;
  refuse_true(config, {"attention_bias"}, "biases are not supported for this type");
  read_dense_layers(config, model, std::min<std::int64_t>(3, model.depth));
  std::vector<bool> usual = every_nth(model.depth, 6);
  usual.back() = true;
  read_window(config, model, usual);
  model.further.vector(model.depth * model.attention.heads);
  return built(model);
}

/// Sinks, a shared expert, and the first two layers without experts.
/// Source  FlintForCausalLM of the transformers library
Model read_flint(Config& config) {
  if (!config.find("mlp_only_layers")) config.assume({{"mlp_only_layers", {0, 1}}});
  ModelDraft model =
      with_experts(config, {"num_experts", "num_local_experts"}, "moe_intermediate_size");
  model.attention.qk_norm = model.attention.sinks = true;
  model.experts.shared_width =
      config.size("shared_expert_intermediate_size", Limits::expert_hidden);
  model.dense = layers_without_experts(config, model);
  model.dense_width = config.size("intermediate_size", Limits::ffn_hidden);
  std::vector<bool> usual;
  for (std::int64_t i = 0; i < model.depth; ++i) {
    usual.push_back(i < 2 || i % 4 == 1 || i == model.depth - 1);
  }
  read_window(config, model, usual);
  model.experts.routing.score = Routing::Score::sigmoid;
  also_inexact(model, some_without_rotation);
  return built(model);
}

/// DeepSeek-V3's experts after attention with norms of queries and keys.
/// Source  Huo et al. 2025, arXiv 2506.05767; Dots1ForCausalLM of the transformers library
Model read_dots1(Config& config) {
  ModelDraft model = glm4_moe_like(config);
  model.attention.qk_norm = true;
  model.attention.output_bias = model.attention.qkv_bias;
  read_window(config, model, std::vector<bool>(static_cast<std::size_t>(model.depth), false));
  heed(config, {"max_window_layers"});
  return built(model);
}

/// One shared expert, as wide as a routed one; older files give what layers have as lists.
/// Source  Tencent Hunyuan Team 2025, Hunyuan-A13B; HunYuanMoEV1ForCausalLM of the transformers
///         library
Model read_hunyuan_v1_moe(Config& config) {
  if (const auto chosen = config.find("moe_topk")) {
    Json each = chosen->json();
    if (chosen->is_array()) {
      const std::vector<Node> listed = chosen->elements();
      if (listed.empty()) chosen->fail("is empty");
      for (const Node& other : listed) {
        if (other.json() != listed[0].json()) {
          other.fail("layers that send a token to different numbers of experts are not supported");
        }
      }
      each = listed[0].json();
    }
    config.assume({{"num_experts_per_tok", std::move(each)}});
  }
  ModelDraft model =
      with_experts(config, {"num_experts", "num_local_experts"}, "intermediate_size");
  model.attention.qk_norm = true;
  share_experts(model, 1);
  // Of its own code, which the library's class does not read.
  heed(config, {"use_qk_norm",
                "use_cla",
                "cla_share_factor",
                "moe_intermediate_size",
                "num_shared_expert",
                "use_mixed_mlp_moe",
                "moe_layer_num_skipped",
                "moe_drop_tokens",
                "moe_random_routing_dropped_token",
                "org_vocab_size",
                "mask_init_id",
                "group_limited_greedy",
                "capacity_factor",
                "use_rotary_pos_emb",
                "norm_type",
                "mlp_bias",
                "eod_token_id",
                "im_end_id",
                "im_newline_id",
                "im_start_id",
                "text_start_id",
                "text_end_id",
                "anyres_pooling_size",
                "tie_word_embeddings"});
  also_inexact(model, norms_after_rotation);
  return built(model);
}

/// Layer norms without biases; keys inside `attn_config` and `ffn_config`.
/// Source  Databricks 2024, DBRX; DbrxForCausalLM of the transformers library
Model read_dbrx(Config& config) {
  const auto attention = config.find("attn_config"), mlp = config.find("ffn_config");
  if (!attention) config.fail("attn_config", "attn_config is missing");
  if (!mlp) config.fail("ffn_config", "ffn_config is missing");
  also_called(config, "num_hidden_layers", {"n_layers"});
  also_called(config, "hidden_size", {"d_model"});
  also_called(config, "num_attention_heads", {"n_heads"});
  also_called(config, "max_position_embeddings", {"max_seq_len"});
  std::vector<std::string> assumed;
  const auto size_in = [&](const char* section, const char* key, std::int64_t high,
                           std::int64_t usual) {
    const auto stated = config.find(section)->find(key);
    if (!stated) {
      assumed.push_back(fmt::format("/{}/{}: not stated; {} assumed", section, key, usual));
    }
    return stated ? stated->integer(1, high) : usual;
  };
  config.assume({{"hidden_act", "silu"},
                 {"num_key_value_heads", size_in("attn_config", "kv_n_heads", Limits::heads, 1)},
                 {"num_experts", size_in("ffn_config", "moe_num_experts", Limits::experts, 4)},
                 {"num_experts_per_tok", size_in("ffn_config", "moe_top_k", Limits::experts, 1)},
                 {"intermediate_size",
                  size_in("ffn_config", "ffn_hidden_size", Limits::expert_hidden, 3584)}});
  if (const auto function = mlp->find("ffn_act_fn")) {
    if (function->value_or("name", std::string{"silu"}) != "silu") {
      function->fail("only \"silu\" is supported for this type");
    }
  }
  if (const auto base = attention->find("rope_theta")) {
    config.assume({{"rope_theta", base->json()}});
  }
  ModelDraft model = with_experts(config, {"num_experts"}, "intermediate_size");
  model.norms.kind = Norm::layer_norm;
  model.norms.bias = false;
  if (attention->find("clip_qkv")) also_inexact(model, "clipped queries, keys and values");
  for (std::string& each : assumed) model.assumptions.push_back(std::move(each));
  return built(model);
}

/// Norms before and after both parts; every fifth layer attends to all tokens.
/// Source  Kolibri1ForCausalLM of the transformers library
Model read_kolibri1(Config& config) {
  ModelDraft model =
      with_experts(config, {"num_local_experts", "num_experts"}, "moe_intermediate_size");
  sigmoid_routing(config, model);
  model.attention.qkv_bias = model.attention.output_bias = false;  // whatever the file says
  model.attention.qk_norm = model.norms.sandwich = true;
  model.experts.shared_width =
      config.size("shared_expert_intermediate_size", Limits::expert_hidden);
  read_window(config, model, every_nth(model.depth, 5));
  heed(config, {"intermediate_size"});
  return built(model);
}

/// Delta rules, windows and full attention in turns, experts on every layer.
/// Source  LaraMiniForCausalLM of the transformers library
Model read_lara_mini(Config& config) {
  ModelDraft model =
      with_experts(config, {"num_experts", "num_local_experts"}, "moe_intermediate_size");
  model.attention.qk_norm = true;
  heed(config, {"intermediate_size"});
  model.experts.mlp = model.mlp;
  model.experts.shared_width =
      config.size("shared_expert_intermediate_size", Limits::expert_hidden);
  const std::int64_t window = config.size_or("sliding_window", Limits::positions, 0);
  const DeltaPart linear = read_delta(config);
  const auto kinds = config.kinds("layer_types", model.depth,
                                  {"linear_attention", "sliding_attention", "full_attention"});
  constexpr std::array<std::size_t, 5> usual{0, 1, 0, 2, 1};
  for (std::int64_t i = 0; i < model.depth; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::size_t kind = kinds ? (*kinds)[at] : usual[at % usual.size()];
    Layer layer{linear, model.experts};
    AttentionPart attention = model.attention;
    if (kind == 1) attention.window = window;
    if (kind > 0) layer.mixer = attention;
    model.layers.push_back(layer);
  }
  also_inexact(model, some_without_rotation);
  return built(model);
}

namespace {

/// A layer's kind by a list of numbers, 0 or 1; nullopt without it.
std::optional<std::vector<bool>> read_marks(const std::optional<Node>& listed,
                                            std::int64_t layers) {
  if (!listed || !listed->is_array()) return std::nullopt;
  std::vector<bool> marks;
  for (const Node& each : listed->elements()) marks.push_back(each.integer(0, 1) == 1);
  if (std::ssize(marks) != layers) listed->fail("expected an entry for each layer");
  return marks;
}

}  // namespace

/// The language model. Layers of sparse attention have an indexer: n heads of width d for queries,
/// one for keys, and a norm of each.
///   h (n + 1) d + 2 d
/// Source  MiniMaxM3VLForCausalLM of the transformers library
Model read_minimax_m3_vl(Config& config) {
  config.find("hidden_act");
  config.assume({{"hidden_act", "silu"}});
  ModelDraft model =
      with_experts(config, {"num_local_experts", "num_experts"}, "intermediate_size");
  sigmoid_routing(config, model);
  model.mlp.activation = Activation::silu;  // whatever the file says
  model.attention.qkv_bias = model.attention.output_bias = false;
  model.attention.qk_norm = true;
  model.experts.shared_width = config.size("shared_intermediate_size", Limits::expert_hidden);
  read_dense_layers(config, model, 0);
  if (const auto sparse = read_marks(config.find("moe_layer_freq"), model.depth);
      sparse && !config.find("mlp_layer_types")) {
    for (std::size_t i = 0; i < sparse->size(); ++i) model.dense[i] = !(*sparse)[i];
  }
  model.dense_width = config.size("dense_intermediate_size", Limits::ffn_hidden);
  const auto older = config.find("sparse_attention_config");
  const auto of = [&](const char* name, const char* key, std::int64_t high) {
    const auto found = older ? older->find(name) : std::nullopt;
    return found ? found->integer(1, high) : config.size(key, high);
  };
  const std::int64_t n = of("sparse_num_index_heads", "index_n_heads", Limits::heads);
  const std::int64_t d = of("sparse_index_dim", "index_head_dim", Limits::head_dim);
  std::int64_t indexed = 0;
  if (const auto kinds =
          config.kinds("layer_types", model.depth, {"full_attention", "minimax_m3_sparse"})) {
    indexed = std::ranges::count(*kinds, std::size_t{1});
  } else if (const auto marks = read_marks(
                 older ? older->find("sparse_attention_freq") : std::nullopt, model.depth)) {
    indexed = std::ranges::count(*marks, true);
  }
  model.further.matrix(indexed * model.hidden * (n + 1) * d);
  model.further.vector(indexed * 2 * d);
  if (indexed > 0) {
    also_inexact(model,
                 "attention to chosen blocks, priced as attention to all tokens and without what "
                 "chooses them");
  }
  heed(config, {"index_n_heads", "index_head_dim", "index_block_size", "index_topk_blocks",
                "index_local_blocks"});
  return built(model);
}

namespace {

/// Layers with experts of Step 3.5: by `mlp_layer_types`, by `moe_layers_enum`, or from layer 3 on.
std::vector<bool> dense_step_layers(Config& config, std::int64_t layers) {
  std::vector<bool> dense = dense_layers(layers, std::min<std::int64_t>(3, layers), 1);
  if (const auto listed = config.find("mlp_layer_types")) {
    const std::vector<Node> all = listed->elements();
    if (std::ssize(all) < layers) listed->fail("has fewer entries than there are layers");
    for (std::size_t i = 0; i < dense.size(); ++i) {
      dense[i] = all[i].one_of({"dense", "sparse"}) == 0;
    }
    return dense;
  }
  const auto numbers = config.find("moe_layers_enum");
  if (!numbers) return dense;
  dense.assign(dense.size(), true);
  const auto with = [&](std::int64_t layer) {
    if (layer >= 0 && layer < layers) dense[static_cast<std::size_t>(layer)] = false;
  };
  if (numbers->is_array()) {
    for (const Node& each : numbers->elements()) with(each.integer(0, Limits::layers));
    return dense;
  }
  std::int64_t number = -1;
  for (const char letter : numbers->as<std::string>() + ",") {
    if (letter >= '0' && letter <= '9') {
      number = std::min<std::int64_t>(Limits::layers,
                                      std::max<std::int64_t>(number, 0) * 10 + (letter - '0'));
    } else {
      with(number);
      number = -1;
    }
  }
  return dense;
}

/// Which layers attend to all tokens; lists of older files go on with the prediction modules'.
std::vector<bool> full_step_layers(Config& config, std::int64_t layers) {
  std::vector<bool> full(static_cast<std::size_t>(layers), true);
  const auto listed = config.find("layer_types");
  if (!listed) return full;
  const std::vector<Node> all = listed->elements();
  if (std::ssize(all) < layers) listed->fail("has fewer entries than there are layers");
  for (std::size_t i = 0; i < full.size(); ++i) {
    full[i] = all[i].one_of({"full_attention", "sliding_attention"}) == 0;
  }
  return full;
}

/// Heads of each layer: those with a window may have others.
std::vector<std::int64_t> step_heads(Config& config, const ModelDraft& model,
                                     const std::vector<bool>& full) {
  const auto setting = config.find("attention_other_setting");
  const auto stated = setting ? setting->find("num_attention_heads") : std::nullopt;
  const std::int64_t narrow =
      config.positive_or("num_sliding_attention_heads", Limits::heads,
                         stated ? stated->integer(1, Limits::heads) : model.attention.heads);
  std::vector<std::int64_t> heads;
  for (std::size_t i = 0; i < full.size(); ++i) {
    const auto own = of_layer(config, static_cast<std::int64_t>(i));
    const auto number = own ? own->find("num_attention_heads") : std::nullopt;
    heads.push_back(number    ? number->integer(1, Limits::heads)
                    : full[i] ? model.attention.heads
                              : narrow);
    if (heads.back() % model.attention.kv_heads != 0) {
      config.fail("num_attention_heads", "is no multiple of num_key_value_heads on some layer");
    }
  }
  return heads;
}

}  // namespace

/// Step 3.5: layers with a window have heads of their own, a gate for each head,
/// a shared expert. Counted without multi-token-prediction modules. Source  Step3p7TextModel of the
/// transformers library
Model read_step3p5(Config& config) {
  also_called(config, "num_key_value_heads", {"num_attention_groups"});
  also_called(config, "n_routed_experts", {"moe_num_experts", "num_experts"});
  also_called(config, "num_experts_per_tok", {"moe_top_k"});
  also_called(config, "share_expert_dim", {"share_expert_dims"});
  config.assume({{"hidden_act", "silu"}});
  ModelDraft model = with_experts(config, {"n_routed_experts"}, "moe_intermediate_size");
  sigmoid_routing(config, model);
  refuse_biases(config, {"mlp_bias"});
  model.attention.qk_norm = true;
  model.experts.shared_width = config.size("share_expert_dim", Limits::expert_hidden);
  model.dense = dense_step_layers(config, model.depth);
  model.dense_width = config.size("intermediate_size", Limits::ffn_hidden);
  const std::vector<bool> full = full_step_layers(config, model.depth);
  model.attention.window = config.size_or("sliding_window", Limits::positions, 0);
  if (model.attention.window > 0) model.full = full;
  const std::vector<std::int64_t> heads = step_heads(config, model, full);
  std::int64_t all_heads = 0;
  for (const std::int64_t each : heads) all_heads += each;
  read_gating(config, model, all_heads);
  vary_layers(model, [&](std::int64_t i, Layer& layer) {
    set_heads(layer, heads[static_cast<std::size_t>(i)]);
  });
  heed(config, {"num_local_experts", "moe_router_scaling_factor", "swiglu_limits",
                "swiglu_limits_shared", "mtp_layer_types", "mtp_mlp_layer_types",
                "partial_rotary_factors", "use_bidirectional_attention"});
  also_inexact(model, one_more);
  return inside_multimodal(config,
                           without_prediction(config, built(model), {"num_nextn_predict_layers"}));
}

}  // namespace orrery::models
