// Readers of decoders whose layers, or most of them, carry a state along the sequence or convolve
// it in place of attention. Counted, not simulated; FLOPs leave out the states' arithmetic.
#include <cmath>

#include "hardware/reading.hpp"
#include "models/model/import/drafts.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

constexpr std::int64_t most_state = 1 << 12;
constexpr std::int64_t longest_convolution = 1 << 10;

/// A model without heads or positions: LLaMA's norms, a table and a head.
ModelDraft without_attention(Config& config) {
  config.assume({{"num_attention_heads", 1}, {"head_dim", 1}});  // no heads: layers are counted
  ModelDraft model = llama_like(config);
  model.embedding.positions = Positions::none;
  return model;
}

double share_of(Config& config, const char* key) {
  const auto found = config.find(key);
  return found ? hardware::within(*found, 1e-3, 64) : 1;
}

/// Mamba. Of inner width i, state s, rank r and c taps:
///   2 h i + i (r + 2 s) + r i + i h  +  i c + i + i s + i
/// Source  Gu and Dao 2023, arXiv 2312.00752; MambaMixer of the transformers library
struct MambaSizes {
  std::int64_t hidden = 0, inner = 0, state = 0, rank = 0, taps = 0;
  bool bias = false, convolution_bias = true;
};
CountedPart mamba_part(const MambaSizes& of) {
  CountedPart part{"Mamba"};
  part.count.matrix(3 * of.hidden * of.inner + of.inner * (2 * of.rank + 2 * of.state));
  part.count.vector(of.inner * (of.taps + of.state + 2 + (of.convolution_bias ? 1 : 0)));
  if (of.bias) part.count.vector(2 * of.inner + of.hidden);
  return part;
}

/// The rank of a layer's time steps; "auto": h / 16, rounded up.
std::int64_t read_rank(Config& config, const char* key, std::int64_t hidden) {
  const auto found = config.find(key);
  if (!found || found->is_string()) return (hidden + 15) / 16;
  return found->integer(1, Limits::hidden);
}

}  // namespace

/// Source  MambaForCausalLM and FalconMambaForCausalLM of the transformers library
Model read_mamba1(Config& config) {
  ModelDraft model = without_attention(config);
  const std::int64_t h = model.hidden;
  const auto inner = static_cast<std::int64_t>(share_of(config, "expand") * static_cast<double>(h));
  const CountedPart mamba = mamba_part({.hidden = h,
                                        .inner = inner,
                                        .state = config.size("state_size", most_state),
                                        .rank = read_rank(config, "time_step_rank", h),
                                        .taps = config.size("conv_kernel", longest_convolution),
                                        .bias = config.flag("use_bias", false),
                                        .convolution_bias = config.flag("use_conv_bias", true)});
  config.find("intermediate_size");
  for (std::int64_t i = 0; i < model.depth; ++i) model.layers.push_back({mamba, NoPart{}});
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  model.formula = "Vh + L(Mamba + h) + h";
  model.not_simulated = "state-space layers are counted, not yet simulated";
  return built(model);
}

/// Every n-th layer attends, every m-th has experts, the others are Mamba layers and MLPs.
/// Source  Lieber et al. 2024, arXiv 2403.19887; JambaForCausalLM of the transformers library
Model read_jamba(Config& config) {
  ModelDraft model = llama_like(config);
  read_expert_counts(config, model, {"num_experts", "num_local_experts"});
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.attention.window = config.size_or("sliding_window", Limits::positions, 0);
  model.experts.mlp = model.mlp;
  const std::int64_t h = model.hidden, state = config.size("mamba_d_state", most_state);
  const MambaSizes sizes{.hidden = h,
                         .inner = config.size("mamba_expand", 64) * h,
                         .state = state,
                         .rank = read_rank(config, "mamba_dt_rank", h),
                         .taps = config.size("mamba_d_conv", longest_convolution),
                         .bias = config.flag("mamba_proj_bias", false),
                         .convolution_bias = config.flag("mamba_conv_bias", true)};
  CountedPart mamba = mamba_part(sizes);
  mamba.count.vector(sizes.rank + 2 * state);  // norms of the three that a token selects by
  const std::int64_t attends = config.size("attn_layer_period", Limits::layers);
  const std::int64_t first = config.size_or("attn_layer_offset", attends - 1, 0);
  const std::int64_t every = config.size("expert_layer_period", Limits::layers);
  const std::int64_t sparse = config.size_or("expert_layer_offset", every - 1, 0);
  for (std::int64_t i = 0; i < model.depth; ++i) {
    Layer layer{model.attention, model.mlp};
    if (i % attends != first) layer.mixer = mamba;
    if (i % every == sparse && model.experts.count > 1) layer.channel = model.experts;
    model.layers.push_back(layer);
  }
  model.not_simulated = "state-space layers are counted, not yet simulated";
  return built(model);
}

namespace {

/// Mamba-2 of heads n and inner width i, one state of s for each of g groups.
///   h (2 i + 2 g s + n) + i h  +  (i + 2 g s) (c + 1) + 3 n + i
/// Source  Zamba2MambaMixer of the transformers library
CountedPart zamba_mamba(Config& config, std::int64_t h) {
  const auto inner =
      static_cast<std::int64_t>(share_of(config, "mamba_expand") * static_cast<double>(h));
  const std::int64_t states =
      config.size("mamba_ngroups", Limits::heads) * config.size("mamba_d_state", most_state);
  const std::int64_t heads = config.size("n_mamba_heads", Limits::heads);
  const std::int64_t taps = config.size("mamba_d_conv", longest_convolution);
  CountedPart part{"Mamba-2"};
  part.count.matrix(h * (3 * inner + 2 * states + heads));
  part.count.vector((inner + 2 * states) * (taps + 1) + 3 * heads + inner);
  return part;
}

/// One of the blocks that several layers share: attention over twice the width, and an MLP.
Tally zamba_block(Config& config, const ModelDraft& model) {
  const std::int64_t h = model.hidden, wide = 2 * h;
  const std::int64_t head = wide / model.attention.heads;
  const std::int64_t queries = model.attention.heads * head;
  const std::int64_t width = config.positive_or("intermediate_size", Limits::ffn_hidden, 4 * h);
  Tally sum;
  sum.matrix(wide * (queries + 2 * model.attention.kv_heads * head) + queries * h + 3 * h * width);
  sum.vector(wide + h);
  return sum;
}

}  // namespace

/// Mamba-2 layers, some of which follow one of a few shared transformer blocks, through a matrix of
/// their own and adapters of rank r: n hybrid layers, h h + h r + 2 r f each.
/// Source  Glorioso et al. 2024, arXiv 2411.15242; Zamba2ForCausalLM of the transformers library
Model read_zamba2(Config& config) {
  for (const char* key :
       {"attention_head_dim", "attention_hidden_size", "kv_channels", "mamba_headdim",
        "num_query_groups", "use_long_context", "use_mem_rope", "use_mem_eff_path",
        "hybrid_layer_ids", "use_mamba_kernels", "use_conv_bias"}) {
    config.find(key);
  }
  config.find("layers_block_type");
  config.assume({{"head_dim", 1}});  // of the shared blocks: zamba_block
  ModelDraft model = llama_like(config);
  if (config.flag("add_bias_linear", false)) {
    config.fail("add_bias_linear", "biases are not supported for this type; expected false");
  }
  const CountedPart mamba = zamba_mamba(config, model.hidden);
  constexpr std::size_t hybrid = 3;
  const auto kinds = config.kinds("layers_block_type", model.depth,
                                  {"mamba", "linear_attention", "m", "hybrid", "g"});
  if (!kinds) config.fail("layers_block_type", "is missing");
  std::int64_t hybrids = 0;
  for (const std::size_t kind : *kinds) {
    hybrids += kind >= hybrid ? 1 : 0;
    model.layers.push_back({mamba, NoPart{}});
  }
  const std::int64_t h = model.hidden, rank = config.size("adapter_rank", Limits::hidden);
  const std::int64_t width = config.positive_or("intermediate_size", Limits::ffn_hidden, 4 * h);
  const std::int64_t blocks = std::min(hybrids, config.size("num_mem_blocks", Limits::layers));
  model.further.add(zamba_block(config, model), blocks);
  model.further.matrix(hybrids * (h * h + rank * (h + 2 * width)));
  if (config.flag("use_shared_attention_adapter", false)) {
    model.further.matrix(hybrids * 3 * 2 * 2 * h * rank);
  }
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  model.formula = "Vh + L(Mamba-2 + h) + shared blocks + hybrid layers*(hh + adapters) + h";
  model.not_simulated = "state-space layers and shared blocks are counted, not yet simulated";
  return built(model);
}

/// Mamba layers of several heads; after some, one shared transformer block, through a matrix of
/// their own.
/// Source  Glorioso et al. 2024, arXiv 2405.16712; ZambaForCausalLM of the transformers library
Model read_zamba(Config& config) {
  config.assume({{"head_dim", 1}});  // of the shared block, counted below
  ModelDraft model = llama_like(config);
  const std::int64_t h = model.hidden;
  const std::int64_t wide = config.positive_or("attention_hidden_size", 1 << 19, 2 * h);
  const std::int64_t head =
      config.positive_or("attention_head_dim", Limits::head_dim, 2 * h / model.attention.heads);
  const std::int64_t queries = model.attention.heads * head;
  const std::int64_t width = config.size("intermediate_size", Limits::ffn_hidden);
  const CountedPart mamba = mamba_part({.hidden = h,
                                        .inner = config.size("mamba_expand", 64) * h,
                                        .state = config.size("mamba_d_state", most_state),
                                        .rank = read_rank(config, "mamba_dt_rank", h),
                                        .taps = config.size("mamba_d_conv", longest_convolution),
                                        .bias = config.flag("mamba_proj_bias", false),
                                        .convolution_bias = config.flag("mamba_conv_bias", true)});
  const std::int64_t every = config.size("attn_layer_period", Limits::layers);
  const std::int64_t first = config.size_or("attn_layer_offset", Limits::layers, 0);
  const char* const key = config.find("layers_block_type") ? "layers_block_type" : "layer_types";
  const auto kinds = config.kinds(key, model.depth, {"mamba", "linear_attention", "hybrid"});
  std::int64_t hybrids = 0;
  for (std::int64_t i = 0; i < model.depth; ++i) {
    const bool usual = i == 2 || (i > 2 && (i - 3) % every == first);
    hybrids += (kinds ? (*kinds)[static_cast<std::size_t>(i)] == 2 : usual) ? 1 : 0;
    model.layers.push_back({mamba, NoPart{}});
  }
  model.further.matrix(hybrids * h * h);
  if (hybrids > 0) {
    model.further.matrix(wide * (queries + 2 * model.attention.kv_heads * head) + queries * h +
                         3 * h * width);
    model.further.vector(wide + h);
  }
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  if (!model.embedding.tied) {  // the class would then have a block for each layer
    config.fail("tie_word_embeddings", "is not supported for this type; expected true");
  }
  for (const char* own :
       {"n_mamba_heads", "hidden_mamba_act", "layer_types", "layers_block_type", "head_dim"}) {
    config.find(own);
  }
  model.formula = "Vh + L(Mamba + h) + shared block + hybrid layers*hh + h";
  model.not_simulated = "state-space layers and shared blocks are counted, not yet simulated";
  return built(model);
}

/// Every second layer has lightning attention: of all heads a, one norm, a gate.
///   h 3 a + a h + h a  +  a
/// Source  MiniMax 2025, arXiv 2501.08313; MiniMaxForCausalLM of the transformers library
Model read_minimax(Config& config) {
  ModelDraft model = llama_like(config);
  read_expert_counts(config, model, {"num_local_experts", "num_experts"});
  model.mlp.width = config.size("intermediate_size", Limits::expert_hidden);
  model.experts.mlp = model.mlp;
  model.attention.window = config.size_or("sliding_window", Limits::positions, 0);
  for (const char* key :
       {"block_size", "full_attn_alpha_factor", "full_attn_beta_factor", "linear_attn_alpha_factor",
        "linear_attn_beta_factor", "mlp_alpha_factor", "mlp_beta_factor"}) {
    config.find(key);
  }
  CountedPart lightning{"lightning attention"};
  lightning.count.matrix(5 * model.hidden * model.attention.query_columns());
  lightning.count.vector(model.attention.query_columns());
  const auto kinds =
      config.kinds("layer_types", model.depth, {"full_attention", "linear_attention"});
  for (std::int64_t i = 0; i < model.depth; ++i) {
    Layer layer{model.attention, model.experts};
    const bool full = kinds ? (*kinds)[static_cast<std::size_t>(i)] == 0 : i % 2 == 0;
    if (!full) layer.mixer = lightning;
    model.layers.push_back(layer);
  }
  model.not_simulated = "lightning attention is counted, not yet simulated";
  return built(model);
}

/// Time mixing by a decay of each channel, and channel mixing: of widths a and f
///   3 h a + a h + 2 a + 3 h        2 h f + h h + 2 h
/// Source  Peng et al. 2023, arXiv 2305.13048; RwkvForCausalLM of the transformers library
Model read_rwkv(Config& config) {
  ModelDraft model = without_attention(config);
  const std::int64_t h = model.hidden;
  const std::int64_t a = config.positive_or("attention_hidden_size", Limits::hidden, h);
  const std::int64_t f = config.positive_or("intermediate_size", Limits::ffn_hidden, 4 * h);
  config.find("context_length");
  config.find("rescale_every");
  model.norms.kind = Norm::layer_norm;
  model.norms.bias = model.norms.embedding = true;
  CountedPart time{"time mixing"}, channel{"channel mixing"};
  time.count.matrix(4 * h * a);
  time.count.vector(2 * a + 3 * h);
  channel.count.matrix(2 * h * f + h * h);
  channel.count.vector(2 * h);
  for (std::int64_t i = 0; i < model.depth; ++i) model.layers.push_back({time, channel});
  model.formula = "2Vh + 2h + L(4ha + 2a + 3h + 2hf + hh + 2h + 4h) + 2h";
  model.not_simulated = "linear attention (RWKV) is counted, not yet simulated";
  return built(model);
}

/// mLSTM: of keys q, values v and n heads
///   h (2 q + 2 v + 2 n) + v h  +  2 n + v
/// Source  Beck et al. 2025, arXiv 2503.13427; xLSTMForCausalLM of the transformers library
Model read_xlstm(Config& config) {
  config.assume(
      {{"num_hidden_layers", config.size({"num_hidden_layers", "num_blocks"}, Limits::layers)},
       {"hidden_size", config.size({"hidden_size", "embedding_dim"}, Limits::hidden)}});
  ModelDraft model = without_attention(config);
  const std::int64_t h = model.hidden, n = config.size("num_heads", Limits::heads);
  constexpr std::int64_t multiple = 64;
  const auto of_width = [&](const char* key) {
    return static_cast<std::int64_t>(share_of(config, key) * static_cast<double>(h));
  };
  const std::int64_t q = of_width("qk_dim_factor"), v = of_width("v_dim_factor");
  const bool bias = config.flag("use_bias", false);
  if (bias) config.fail("use_bias", "biases are not supported for this type; expected false");
  if (config.find("weight_mode") && config.find("weight_mode")->as<std::string>() != "single") {
    config.fail("weight_mode", "expected \"single\"");
  }
  CountedPart mixer{"mLSTM"};
  mixer.count.matrix(h * (2 * q + 3 * v + 2 * n));
  mixer.count.vector(2 * n + v);
  const std::int64_t to = config.positive_or("ffn_round_up_to_multiple_of", 1 << 12, multiple);
  model.mlp.width = (of_width("ffn_proj_factor") + to - 1) / to * to;
  model.embedding.tied = false;  // whatever the file says
  for (std::int64_t i = 0; i < model.depth; ++i) model.layers.push_back({mixer, model.mlp});
  for (const char* key :
       {"autocast_kernel_dtype", "chunkwise_kernel", "embedding_dim", "eps", "gate_soft_cap",
        "inference_state_dtype", "max_inference_chunksize", "mode", "norm_reduction_force_float32",
        "num_blocks", "output_logit_soft_cap", "return_last_states", "sequence_kernel",
        "step_kernel", "add_out_norm"}) {
    config.find(key);
  }
  model.not_simulated = "mLSTM layers are counted, not yet simulated";
  return built(model);
}

namespace {

/// Convolutions of a few taps between two gates, h 3 h + h c + h h, and some attention layers, each
/// with what `channel` gives it.
Model with_convolutions(Config& config, ModelDraft model, const auto& channel) {
  model.embedding.tied = config.flag("tie_embedding", config.flag("tie_word_embeddings", true));
  model.attention.qk_norm = true;
  const std::int64_t h = model.hidden, taps = config.size("conv_L_cache", longest_convolution);
  CountedPart convolution{"gated convolution"};
  convolution.count.matrix(4 * h * h);
  convolution.count.vector(h * taps);
  if (config.flag("conv_bias", false)) convolution.count.vector(5 * h);
  const auto kinds = config.kinds("layer_types", model.depth, {"full_attention", "conv"});
  std::vector<bool> attends(static_cast<std::size_t>(model.depth), true);
  const auto listed = config.find("full_attn_idxs");
  if (kinds) {
    for (std::size_t i = 0; i < attends.size(); ++i) attends[i] = (*kinds)[i] == 0;
  } else if (listed) {
    attends.assign(attends.size(), false);
    for (const Node& each : listed->elements()) {
      attends[static_cast<std::size_t>(each.integer(0, model.depth - 1))] = true;
    }
  }
  for (std::size_t i = 0; i < attends.size(); ++i) {
    Layer layer = channel(static_cast<std::int64_t>(i));
    layer.mixer = model.attention;
    if (!attends[i]) layer.mixer = convolution;
    if (!attends[i]) model.not_simulated = "gated convolutions are counted, not yet simulated";
    model.layers.push_back(layer);
  }
  for (const char* key :
       {"block_dim", "conv_dim", "conv_dim_out", "conv_use_xavier_init", "block_mlp_init_scale",
        "block_norm_eps", "block_out_init_scale", "block_use_swiglu", "block_use_xavier_init",
        "num_heads", "intermediate_size", "full_attn_idxs"}) {
    config.find(key);
  }
  return built(model);
}

}  // namespace

/// Source  Liquid AI 2025, arXiv 2511.23404; Lfm2ForCausalLM of the transformers library
Model read_lfm2(Config& config) {
  ModelDraft model = llama_like(config);
  std::int64_t width = config.size({"block_ff_dim", "intermediate_size"}, Limits::ffn_hidden);
  const double factor = share_of(config, "block_ffn_dim_multiplier");
  const std::int64_t multiple = config.positive_or("block_multiple_of", 1 << 16, 256);
  if (config.flag("block_auto_adjust_ff_dim", true)) {
    width = static_cast<std::int64_t>(factor * static_cast<double>(2 * width / 3));
    width = (width + multiple - 1) / multiple * multiple;
  }
  model.mlp.width = width;
  const MlpPart mlp = model.mlp;
  return with_convolutions(config, std::move(model), [&](std::int64_t) {
    return Layer{NoPart{}, mlp};
  });
}

/// The same with experts from layer `num_dense_layers` on.
/// Source  Lfm2MoeForCausalLM of the transformers library
Model read_lfm2_moe(Config& config) {
  ModelDraft model =
      with_experts(config, {"num_experts", "num_local_experts"}, "moe_intermediate_size");
  model.attention.qkv_bias = model.attention.output_bias = false;
  sigmoid_routing(config, model);
  heed(config, {"use_expert_bias"});
  model.experts.mlp = model.mlp;
  MlpPart dense = model.mlp;
  dense.width = config.size("intermediate_size", Limits::ffn_hidden);
  const std::int64_t first = config.size_or("num_dense_layers", Limits::layers, 2);
  const ExpertsPart experts = model.experts;
  return with_convolutions(config, std::move(model), [&](std::int64_t layer) {
    return layer < first ? Layer{NoPart{}, dense} : Layer{NoPart{}, experts};
  });
}

/// Two of three layers are a gated linear recurrence of width w; of n heads and c taps
///   3 h w + 2 w + h  +  w c + w  +  w + 2 (w w / n + w)
/// Source  Botev et al. 2024, arXiv 2404.07839; RecurrentGemmaForCausalLM of the transformers
///         library
Model read_recurrent_gemma(Config& config) {
  for (const char* key : {"head_dim", "final_w_init_variance_scale", "w_init_variance_scale",
                          "logits_soft_cap", "layers_block_type"}) {
    config.find(key);
  }
  ModelDraft model = llama_like(config);
  const std::int64_t h = model.hidden, n = model.attention.heads;
  model.attention.head_dim = h / n;
  model.attention.qkv_bias = config.flag("attention_bias", false);
  model.attention.output_bias = model.mlp.bias = true;
  model.attention.window = config.size_or("attention_window_size", Limits::positions, 0);
  model.mlp.activation = config.activation("hidden_activation", Activation::gelu);
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden) / 2;
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  const std::int64_t w = config.positive_or("lru_width", Limits::hidden, h);
  CountedPart recurrence{"gated linear recurrence"};
  recurrence.count.matrix(3 * h * w + 2 * n * (w / n) * (w / n));
  recurrence.count.vector(2 * w + h + w * (config.size("conv1d_width", longest_convolution) + 1) +
                          3 * w);
  const auto listed = config.find("block_types");
  if (!listed) config.fail("block_types", "is null; expected a list of recurrent and attention");
  const std::vector<Node> cycle = listed->elements();
  if (cycle.empty()) config.fail("block_types", "is empty");
  for (std::int64_t i = 0; i < model.depth; ++i) {
    Layer layer{model.attention, model.mlp};
    const Node& kind = cycle[static_cast<std::size_t>(i) % cycle.size()];
    if (kind.one_of({"recurrent", "attention"}) == 0) layer.mixer = recurrence;
    model.layers.push_back(layer);
  }
  model.not_simulated = "gated linear recurrences are counted, not yet simulated";
  return built(model);
}

/// Qwen3-Next with MLPs in place of experts: gated delta, and gated attention on every n-th layer.
/// Source  Qwen3_5ForCausalLM of the transformers library
Model read_qwen3_5(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.attention.qk_norm = true;
  model.attention.gated = true;
  model.norms.offset = 1;
  const DeltaPart delta = read_delta(config);
  const std::int64_t every = config.positive_or("full_attention_interval", Limits::layers, 4);
  const auto kinds =
      config.kinds("layer_types", model.depth, {"full_attention", "linear_attention"});
  for (std::int64_t i = 0; i < model.depth; ++i) {
    const bool full = kinds ? (*kinds)[static_cast<std::size_t>(i)] == 0 : (i + 1) % every == 0;
    Layer layer{model.attention, model.mlp};
    if (!full) layer.mixer = delta;
    model.layers.push_back(layer);
  }
  for (const char* key : {"attn_output_gate", "mlp_only_layers", "mtp_num_hidden_layers",
                          "mtp_use_dedicated_embeddings", "output_gate_type"}) {
    config.find(key);
  }
  return built(model);
}

}  // namespace orrery::models
