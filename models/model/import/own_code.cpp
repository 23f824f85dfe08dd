// Readers of models whose code lies next to their weights, not in a library: what their configs
// call things, and what their layers have.
#include <fmt/format.h>

#include <algorithm>

#include "models/model/import/drafts.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

/// A linear layer in the place of attention or an MLP.
CountedPart linear_layer(std::int64_t width) {
  CountedPart part{"linear layer"};
  part.count.matrix(width * width);
  return part;
}

/// Masked tokens are predicted from both sides.
Model diffused(Model model, const char* mask) {
  model.causal = false;
  also_inexact(model, mask);
  return model;
}

constexpr const char* in_blocks =
    "attention within and before a block of tokens, priced as attention to all tokens";

}  // namespace

/// ChatGLM 2 and later: keys and values of `multi_query_group_num` heads, biases of queries, keys
/// and values alone.
/// Source  THUDM/chatglm3-6b and glm-4-9b, modeling_chatglm.py: 6,243,584,000 and 9,399,951,360
Model read_chatglm(Config& config) {
  also_called(config, "num_hidden_layers", {"num_layers"});
  if (!config.states("vocab_size")) also_called(config, "vocab_size", {"padded_vocab_size"});
  also_called(config, "intermediate_size", {"ffn_hidden_size"});
  also_called(config, "head_dim", {"kv_channels"});
  also_called(config, "max_position_embeddings", {"seq_length"});
  if (config.flag("multi_query_attention", false)) {
    also_called(config, "num_key_value_heads", {"multi_query_group_num"});
  }
  if (!config.flag("rmsnorm", true)) config.fail("rmsnorm", "expected true for this type");
  if (!config.flag("post_layer_norm", true)) {
    config.fail("post_layer_norm", "expected true for this type");
  }
  if (config.size_or("pre_seq_len", Limits::positions, 0) != 0) {
    config.fail("pre_seq_len", "prefixes are not supported for this type; expected null");
  }
  ModelDraft model = llama_like(config);
  model.embedding.vocab =  // of the table, whatever the tokenizer's is
      config.positive_or("padded_vocab_size", Limits::vocab, model.embedding.vocab);
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.attention.output_bias = model.mlp.bias = config.flag("add_bias_linear", false);
  model.attention.qkv_bias = config.flag("add_qkv_bias", false) || model.mlp.bias;
  model.embedding.rotary.share = 0.5;
  heed(config,
       {"prefix_projection", "fp32_residual_connection", "original_rope", "rope_ratio",
        "multi_query_group_num", "attention_softmax_in_fp32", "apply_query_key_layer_scaling"});
  also_inexact(model, "rotary embedding on interleaved pairs");
  return built(model);
}

/// The first Qwen: as many keys as queries, with biases; `intermediate_size` is that of gate and up
/// together. Source  Qwen/Qwen-7B, modeling_qwen.py: 7,721,324,544
Model read_qwen(Config& config) {
  also_called(config, "head_dim", {"kv_channels"});
  also_called(config, "max_position_embeddings", {"seq_length"});
  config.assume({{"hidden_act", "silu"}});
  ModelDraft model = llama_like(config);
  const std::int64_t both = config.size("intermediate_size", Limits::ffn_hidden);
  if (both % 2 != 0) config.fail("intermediate_size", "is odd; expected gate and up together");
  model.mlp.width = both / 2;
  model.attention.qkv_bias = true;
  model.attention.output_bias = model.mlp.bias = !config.flag("no_bias", true);
  heed(config, {"use_dynamic_ntk", "use_logn_attn", "use_flash_attn", "use_cache_quantization",
                "use_cache_kernel", "softmax_in_fp32", "scale_attn_weights", "bf16", "fp16", "fp32",
                "onnx_safe"});
  return built(model);
}

/// LLaMA's parameters; files without `max_position_embeddings` have ALiBi (13B).
/// Source  baichuan-inc/Baichuan2-7B-Base, modeling_baichuan.py: 7,505,973,248
Model read_baichuan(Config& config) {
  const bool rotates = config.find("max_position_embeddings").has_value();
  also_called(config, "max_position_embeddings", {"model_max_length"});
  ModelDraft model = llama_like(config);
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  if (!rotates) model.embedding.positions = Positions::alibi;
  heed(config, {"z_loss_weight", "model_max_length"});
  return built(model);
}

/// LLaMA whose `bias` is that of all matrices of attention.
/// Source  internlm/internlm-7b, modeling_internlm.py; openPangu-Embedded, modeling_openpangu.py
Model read_internlm(Config& config) {
  ModelDraft model = llama_like(config);
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.attention.qkv_bias = model.attention.output_bias = config.flag("bias", true);
  return built(model);
}

/// Source  internlm/internlm2-7b, modeling_internlm2.py: 7,737,708,544
Model read_internlm2(Config& config) {
  ModelDraft model = llama_like(config);
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.attention.qkv_bias = model.attention.output_bias = config.flag("bias", false);
  heed(config, {"attn_implementation"});
  return built(model);
}

/// Layer norms with biases. Source  OrionStarAI/Orion-14B-Base, modeling_orion.py: 14,498,703,360
Model read_orion(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.norms.kind = Norm::layer_norm;
  model.norms.bias = true;
  return built(model);
}

/// LLaMA with scaled embeddings, residuals and logits.
/// Source  Hu et al. 2024, arXiv 2404.06395; openbmb/MiniCPM-2B, modeling_minicpm.py:
///         2,724,880,896
Model read_minicpm(Config& config) {
  if (config.find("num_experts")) {
    config.fail("num_experts", "experts are not supported for this type");
  }
  ModelDraft model = llama_with_biases(config);
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  heed(config, {"scale_emb", "scale_depth", "dim_model_base", "mup_denominator"});
  also_inexact(model, "multipliers of embeddings, residuals and logits");
  if (config.find("sparse_config")) {
    also_inexact(model, "attention to chosen blocks, priced as attention to all tokens");
  }
  return built(model);
}

/// The first mixture of experts of DeepSeek: attention of LLaMA, small routed and shared experts.
/// Source  Dai et al. 2024, arXiv 2401.06066; deepseek-ai/deepseek-moe-16b-base: 16,375,728,128
Model read_deepseek_moe(Config& config) {
  ModelDraft model = with_experts(config, {"n_routed_experts"}, "moe_intermediate_size");
  model.experts.routing.normalised = config.flag("norm_topk_prob", false);
  share_experts(model, config.size_or("n_shared_experts", Limits::experts, 0));
  model.dense = dense_layers(model.depth, first_few(config, model),
                             config.positive_or("moe_layer_freq", Limits::layers, 1));
  model.dense_width = config.size("intermediate_size", Limits::ffn_hidden);
  return built(model);
}

namespace {

ModelDraft bailing_like(Config& config) {
  also_called(config, "attention_bias", {"use_qkv_bias"});
  ModelDraft model =
      with_experts(config, {"num_experts", "num_local_experts"}, "moe_intermediate_size");
  refuse_true(config, {"norm_head"}, "normalised heads are not supported for this type");
  model.attention.output_bias = model.mlp.bias = config.flag("use_bias", false);
  share_experts(model, config.size_or("num_shared_experts", Limits::experts, 0));
  const std::int64_t first = first_few(config, model);
  if (first > 0) read_dense_layers(config, model, first);
  heed(config,
       {"intermediate_size", "output_dropout", "norm_softmax", "max_window_layers", "use_rmsnorm",
        "use_sliding_window", "sliding_window", "moe_router_dtype", "router_dtype",
        "score_function", "moe_router_enable_expert_bias", "moe_shared_expert_intermediate_size",
        "mtp_loss_scaling_factor", "output_router_logits", "moe_router_topk_scaling_factor"});
  return model;
}

/// Ling 2: sigmoid scores with a bias, norms of queries and keys.
ModelDraft bailing_v2_like(Config& config) {
  ModelDraft model = bailing_like(config);
  sigmoid_routing(config, model);
  model.attention.qk_norm = config.flag("use_qk_norm", true);
  model.prediction_layers = config.size_or("num_nextn_predict_layers", Limits::layers, 0);
  return model;
}

}  // namespace

/// Source  Ling Team 2025, arXiv 2503.05139; inclusionAI/Ling-lite, modeling_bailing_moe.py:
///         16,801,974,272
Model read_bailing_moe(Config& config) {
  return built(bailing_like(config));
}

/// Source  inclusionAI/Ling-mini-2.0, modeling_bailing_moe_v2.py: 16,255,638,528
Model read_bailing_moe_v2(Config& config) {
  return built(bailing_v2_like(config));
}

/// Ling 2 that fills in masked tokens, block by block.
/// Source  inclusionAI/LLaDA2.0-mini, modeling_llada2_moe.py
Model read_llada2_moe(Config& config) {
  return diffused(built(bailing_v2_like(config)), in_blocks);
}

/// Its code is the library's MiniMax with other keys: `attn_type_list` has 1 for attention to all
/// tokens, 0 for lightning attention.
/// Source  MiniMax 2025, arXiv 2501.08313; MiniMaxAI/MiniMax-Text-01: 456,089,655,296
Model read_minimax_text(Config& config) {
  if (config.size_or("shared_intermediate_size", Limits::ffn_hidden, 0) != 0) {
    config.fail("shared_intermediate_size", "shared experts are not supported; expected 0");
  }
  if (const auto listed = config.find("attn_type_list")) {
    const std::int64_t layers = config.size("num_hidden_layers", Limits::layers);
    if (std::ssize(listed->elements()) != layers) {
      listed->fail(fmt::format("has {} entries for {} layers", listed->elements().size(), layers));
    }
    Json types = Json::array();
    for (const Node& each : listed->elements()) {
      types.push_back(each.integer(0, 1) == 1 ? "full_attention" : "linear_attention");
    }
    config.assume({{"layer_types", std::move(types)}});
  } else {
    config.fail("attn_type_list", "attn_type_list is missing: which layers attend to all tokens");
  }
  heed(config, {"postnorm", "shared_moe_mode", "layernorm_full_attention_alpha",
                "layernorm_full_attention_beta", "layernorm_linear_attention_alpha",
                "layernorm_linear_attention_beta", "layernorm_mlp_alpha", "layernorm_mlp_beta",
                "rotary_dim", "head_dim"});
  return read_minimax(config);
}

/// LLaMA's blocks that fill in masked tokens.
/// Source  Nie et al. 2025, arXiv 2502.09992; GSAI-ML/LLaDA-8B-Base, modeling_llada.py:
///         8,015,581,184
Model read_llada(Config& config) {
  also_called(config, "num_hidden_layers", {"n_layers"});
  also_called(config, "hidden_size", {"d_model"});
  also_called(config, "num_attention_heads", {"n_heads"});
  also_called(config, "num_key_value_heads", {"n_kv_heads"});
  also_called(config, "intermediate_size", {"mlp_hidden_size"});
  also_called(config, "max_position_embeddings", {"max_sequence_length"});
  also_called(config, "tie_word_embeddings", {"weight_tying"});
  config.assume({{"hidden_act", "silu"}});
  const auto block = config.find("block_type");
  if (block && block->as<std::string>() != "llama") {
    block->fail("only \"llama\" is supported for this type");
  }
  const auto expect = [&](std::string_view key, std::string_view word) {
    const auto stated = config.find(key);
    if (stated && stated->as<std::string>() != word) {
      stated->fail(fmt::format("only \"{}\" is supported for this type", word));
    }
  };
  expect("layer_norm_type", "rms");
  expect("activation_type", "silu");
  if (!config.flag("rope", true)) config.fail("rope", "expected true for this type");
  if (config.flag("multi_query_attention", false) && !config.find("n_kv_heads")) {
    config.assume({{"num_key_value_heads", 1}});
  }
  ModelDraft model = llama_like(config);
  model.embedding.vocab =
      config.positive_or("embedding_size", Limits::vocab, model.embedding.vocab);
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.attention.output_bias = model.mlp.bias = config.flag("include_bias", false);
  model.attention.qkv_bias = config.flag("include_qkv_bias", model.mlp.bias);
  model.causal = false;
  refuse_true(config,
              {"alibi", "attention_layer_norm", "input_emb_norm", "layer_norm_with_affine_bias",
               "scale_logits"},
              "is not supported for this type; expected false");
  heed(config, {"alibi_bias_max", "bias_for_layer_norm", "block_group_size", "flash_attention",
                "init_fn", "mask_token_id", "mlp_ratio", "precision", "residual_dropout",
                "rope_full_precision", "attention_layer_norm_with_affine", "init_cutoff_factor"});
  return built(model);
}

/// Qwen 2.5 that fills in masked tokens. Source  Dream-org/Dream-v0-Base-7B, modeling_dream.py
Model read_dream(Config& config) {
  heed(config, {"mask_token_id"});
  Model model = read_qwen2(config);
  model.causal = false;
  return model;
}

/// Qwen 3 that fills in masked tokens, block by block.
/// Source  Cheng et al. 2025, arXiv 2510.06303; JetLM/SDAR-8B-Chat, modeling_sdar.py
Model read_sdar(Config& config) {
  heed(config, {"block_size", "mask_token_id", "fuse_cross_entropy", "debug"});
  return diffused(read_qwen3(config), in_blocks);
}

/// The same of Qwen 3 with experts. Source  JetLM/SDAR-30B-A3B-Chat, modeling_sdar_moe.py
Model read_sdar_moe(Config& config) {
  heed(config, {"block_size", "mask_token_id", "fuse_cross_entropy", "debug"});
  return diffused(read_qwen3_moe(config), in_blocks);
}

/// LLaMA with norms before and after both parts, whose layers run `total_ut_steps` times, and what
/// decides when to stop.
///   h + 1
/// Source  Zhu et al. 2025, arXiv 2510.25741; ByteDance/Ouro-1.4B, modeling_ouro.py
Model read_ouro(Config& config) {
  ModelDraft model = with_optional_window(config, llama_with_biases(config));
  model.norms.sandwich = true;
  model.further.vector(model.hidden + 1);
  heed(config, {"early_exit_threshold"});
  const std::int64_t passes = config.positive_or("total_ut_steps", Limits::layers, 4);
  if (passes > 1) {
    model.not_simulated = fmt::format(
        "layers that run again are counted, not yet simulated: FLOPs are of one of {} passes",
        passes);
  }
  return built(model);
}

namespace {

/// The width of an MLP by its ratio: two thirds of it, in full 256.
std::int64_t width_of_ratio(const Node& ratio, std::int64_t hidden) {
  constexpr std::int64_t multiple = 256;
  const double width = 2 * ratio.as<double>() * static_cast<double>(hidden) / 3;
  if (!(width >= 1 && width <= Limits::ffn_hidden - multiple)) {
    ratio.fail(fmt::format("makes an MLP that is not 1 to {} wide", Limits::ffn_hidden - multiple));
  }
  return (static_cast<std::int64_t>(width) + multiple - 1) / multiple * multiple;
}

}  // namespace

/// LLaMA whose blocks a search has thinned out: each states its groups of heads and its MLP's
/// ratio, or that a linear layer or nothing stands for them.
/// Source  Bercovich et al. 2024, arXiv 2411.19146; nvidia/Llama-3_3-Nemotron-Super-49B-v1,
///         block_config.py and modeling_decilm.py
Model read_nemotron_nas(Config& config) {
  ModelDraft model = llama_like(config);
  const auto blocks = config.find("block_configs");
  if (!blocks) config.fail("block_configs", "block_configs is missing: what each layer has");
  const std::vector<Node> listed = blocks->elements();
  if (std::ssize(listed) != model.depth) {
    blocks->fail(fmt::format("has {} entries for {} layers", listed.size(), model.depth));
  }
  const bool bias = config.flag("attention_bias", false);
  model.attention.qkv_bias = model.attention.output_bias = bias;
  model.mlp.bias = config.flag("mlp_bias", false);
  for (const Node& block : listed) {
    Layer layer;
    const Node attention = block["attention"], mlp = block["ffn"];
    const auto is = [](const Node& part, std::string_view key) {
      return part.value_or(key, false);
    };
    if (is(attention, "replace_with_linear")) {
      layer.mixer = linear_layer(model.hidden);
    } else if (!is(attention, "no_op")) {
      for (const char* key : {"sparsify", "num_sink_tokens"}) {
        if (const auto stated = attention.find(key))
          stated->fail("is not supported; expected null");
      }
      AttentionPart part = model.attention;
      const Node group = attention["n_heads_in_group"];
      const std::int64_t heads = group.integer(1, part.heads);
      if (part.heads % heads != 0) group.fail("does not divide num_attention_heads");
      part.kv_heads = part.heads / heads;
      if (const auto window = attention.find("window_length")) {
        part.window = window->integer(1, Limits::positions);
      }
      layer.mixer = part;
    }
    if (is(mlp, "replace_with_linear")) {
      layer.channel = linear_layer(model.hidden);
    } else if (!is(mlp, "no_op")) {
      MlpPart part = model.mlp;
      part.width = width_of_ratio(mlp["ffn_mult"], model.hidden);
      layer.channel = part;
    }
    if (layer.parts() == 0) continue;  // a block without either
    const bool counted = std::holds_alternative<CountedPart>(layer.mixer) ||
                         std::holds_alternative<CountedPart>(layer.channel);
    if (counted) model.not_simulated = "linear layers for a part are counted, not yet simulated";
    model.layers.push_back(layer);
  }
  if (model.layers.size() == 0) blocks->fail("every block is empty");
  model.depth = model.layers.size();
  heed(config, {"intermediate_size", "num_key_value_heads"});
  return built(model);
}

}  // namespace orrery::models
