// Readers of decoders in which state-space layers or delta rules stand next to attention: Bamba,
// Granite 4, Falcon H1, Olmo Hybrid, Ling 2.5, LFM 3, Mamba-2 alone, and ZAYA, whose attention
// convolves queries and keys. What a part does not state is among the parameters and without a
// kernel of its own in the price.
#include <fmt/format.h>

#include <algorithm>

#include "models/model/import/drafts.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

constexpr std::int64_t most_taps_of_mamba = 1 << 10, longest_chunk_of_mamba = 1 << 14;

/// Mamba-2 by the keys of Bamba; heads fill `inner`, by default the layers' width times
/// `mamba_expand`.
Mamba2Part read_mamba_of_hybrid(Config& config, std::int64_t inner) {
  Mamba2Part part;
  part.heads = config.size("mamba_n_heads", Limits::heads);
  const auto stated = config.find("mamba_d_head");
  const bool divides = inner % part.heads == 0;
  if (!divides) config.fail("mamba_n_heads", fmt::format("does not divide the width {}", inner));
  part.head_dim = inner / part.heads;
  if (stated && !stated->is_string() && stated->integer(1, inner) != part.head_dim) {
    stated->fail(fmt::format("{} heads are not {} columns wide together", part.heads, inner));
  }
  part.groups = config.size("mamba_n_groups", Limits::heads);
  part.state = config.size("mamba_d_state", Limits::head_dim);
  part.taps = config.size("mamba_d_conv", most_taps_of_mamba);
  part.chunk = config.positive_or("mamba_chunk_size", longest_chunk_of_mamba, part.chunk);
  return part;
}

/// Biases of projections, and a convolution without one, in so many layers.
void add_mamba_biases(Config& config, ModelDraft& model, const Mamba2Part& mamba,
                      std::int64_t layers, const char* of_output) {
  const std::int64_t in = mamba.inner() + mamba.convolved() + mamba.heads;
  if (config.flag("mamba_proj_bias", false)) model.further.vector(layers * in);
  if (config.flag("mamba_proj_bias", false) || config.flag(of_output, false)) {
    also_inexact(model, "biases of Mamba-2's projections");
  }
  if (config.flag(of_output, false)) model.further.vector(layers * model.hidden);
  if (!config.flag("mamba_conv_bias", true)) model.further.vector(-layers * mamba.convolved());
}

/// Which layers attend, by a list of words; older files call the others Mamba.
std::optional<std::vector<bool>> attending(Config& config, std::int64_t layers) {
  const char* const key = config.find("layer_types") ? "layer_types" : "layers_block_type";
  const auto kinds =
      config.kinds(key, layers, {"full_attention", "attention", "linear_attention", "mamba"});
  heed(config, {"layer_types", "layers_block_type"});
  if (!kinds) return std::nullopt;
  std::vector<bool> attends;
  for (const std::size_t kind : *kinds) attends.push_back(kind < 2);
  return attends;
}

/// Layers of one channel, whose mixers attend where `attends` says so.
void mix_layers(ModelDraft& model, const std::vector<bool>& attends, const Layer& otherwise) {
  for (const bool attention : attends) {
    Layer layer = otherwise;
    if (attention) layer.mixer = model.attention;
    model.layers.push_back(layer);
  }
}

}  // namespace

/// Layers of Mamba-2 alone.  2 V h + L (h (2 i + 2 g s + n) + i h + (i + 2 g s)(c + 1) + 3 n + i +
/// h) + h  of heads n, inner width i, state s of g groups, c taps
/// Source  Dao and Gu 2024, arXiv 2405.21060; Mamba2ForCausalLM of the transformers library
Model read_mamba2(Config& config) {
  Mamba2Part mamba;
  mamba.heads = config.size("num_heads", Limits::heads);
  mamba.head_dim = config.size("head_dim", Limits::head_dim);
  mamba.groups = config.size("n_groups", Limits::heads);
  mamba.state = config.size("state_size", Limits::head_dim);
  mamba.taps = config.size("conv_kernel", most_taps_of_mamba);
  mamba.chunk = config.positive_or("chunk_size", longest_chunk_of_mamba, mamba.chunk);
  config.assume({{"num_attention_heads", 1}, {"num_key_value_heads", 1}});  // there is no attention
  ModelDraft model = llama_like(config);
  const std::int64_t h = model.hidden;
  if (config.positive_or("expand", Limits::heads, 2) * h != mamba.inner()) {
    config.fail("expand", fmt::format("{} heads of {} are not that often as wide as the layers, {}",
                                      mamba.heads, mamba.head_dim, h));
  }
  const std::int64_t in = mamba.inner() + mamba.convolved() + mamba.heads;
  if (config.flag("use_bias", false)) {
    model.further.vector(model.depth * (in + h));
    also_inexact(model, "biases of Mamba-2's projections");
  }
  if (!config.flag("use_conv_bias", true)) model.further.vector(-model.depth * mamba.convolved());
  heed(config, {"intermediate_size", "layer_types"});
  model.embedding.positions = Positions::none;
  for (std::int64_t i = 0; i < model.depth; ++i) model.layers.push_back({mamba, NoPart{}});
  model.formula = "Vh (twice when untied) + L(Mamba-2 + h) + h";
  return built(model);
}

/// Mamba-2 and a gated MLP in each layer, attention in place of Mamba-2 in a few.
/// Source  IBM 2024, Bamba-9B; BambaForCausalLM of the transformers library
Model read_bamba(Config& config) {
  ModelDraft model = llama_with_biases(config);
  const Mamba2Part mamba =
      read_mamba_of_hybrid(config, config.size("mamba_expand", 64) * model.hidden);
  std::vector<bool> attends(static_cast<std::size_t>(model.depth), false);
  const auto listed = config.find("attn_layer_indices");
  if (listed) {
    for (const Node& each : listed->elements()) {
      attends[static_cast<std::size_t>(each.integer(0, model.depth - 1))] = true;
    }
  }
  heed(config, {"z_loss_coefficient", "layers_block_type", "layer_types"});
  mix_layers(model, attends, {mamba, model.mlp});
  const auto others = std::ranges::count(attends, false);
  add_mamba_biases(config, model, mamba, others, "mamba_proj_bias");
  model.formula = "2Vh + L(3hf + 2h) + attention layers*h(2q+2k) + Mamba-2 layers + h";
  return built(model);
}

/// Granite's multipliers; each layer has a shared MLP and, where there are some, routed experts.
/// Source  IBM 2025, Granite 4.0; GraniteMoeHybridForCausalLM of the transformers library
Model read_granitemoehybrid(Config& config) {
  ModelDraft model = llama_like(config);
  model.attention.qkv_bias = model.attention.output_bias = config.flag("attention_bias", false);
  const Mamba2Part mamba =
      read_mamba_of_hybrid(config, config.size("mamba_expand", 64) * model.hidden);
  const std::int64_t shared = config.size("shared_intermediate_size", Limits::expert_hidden);
  const std::int64_t routed = config.size("intermediate_size", Limits::expert_hidden);
  Layer layer{mamba, model.mlp};
  std::get<MlpPart>(layer.channel).width = shared;
  if (config.size_or("num_local_experts", Limits::experts, 0) > 0) {
    read_expert_counts(config, model, {"num_local_experts"});
    model.experts.mlp = model.mlp;
    model.experts.mlp.width = routed;
    model.experts.shared_width = shared;
    model.experts.routing.normalised = true;
    layer.channel = model.experts;
  }
  config.find("num_experts_per_tok");
  std::vector<bool> attends(static_cast<std::size_t>(model.depth), false);
  attends = attending(config, model.depth).value_or(attends);
  mix_layers(model, attends, layer);
  add_mamba_biases(config, model, mamba, std::ranges::count(attends, false), "mamba_proj_bias");
  config.find("normalization_function");
  read_multipliers(config, model);
  const auto positions = config.find("position_embedding_type");
  if (!positions || positions->as<std::string>() != "rope") {
    model.embedding.positions = Positions::none;
  }
  model.formula =
      "Vh (twice when untied) + L(3hs + 2h) + expert layers*(hE + E*3hf) + attention "
      "layers*h(2q+2k) + Mamba-2 layers + h";
  return built(model);
}

/// Attention and Mamba-2 read the same normalised input, and their outputs are added. A layer is
/// simulated as two, Mamba-2 and then attention with the MLP: the same kernels, one norm more.
/// Source  TII 2025, arXiv 2507.22448; FalconH1ForCausalLM of the transformers library
Model read_falcon_h1(Config& config) {
  ModelDraft model = llama_with_biases(config);
  const std::int64_t expanded = config.size("mamba_expand", 64) * model.hidden;
  const Mamba2Part mamba =
      read_mamba_of_hybrid(config, config.positive_or("mamba_d_ssm", Limits::ffn_hidden, expanded));
  for (std::int64_t i = 0; i < model.depth; ++i) {
    model.layers.push_back({mamba, NoPart{}});
    model.layers.push_back({model.attention, model.mlp});
  }
  model.further.vector(-model.depth * model.hidden);
  if (!config.flag("mamba_rms_norm", false)) model.further.vector(-model.depth * mamba.inner());
  add_mamba_biases(config, model, mamba, model.depth, "projectors_bias");
  heed(config, {"attention_in_multiplier", "attention_out_multiplier", "embedding_multiplier",
                "key_multiplier", "lm_head_multiplier", "mamba_norm_before_gate", "mamba_use_mlp",
                "mlp_expansion_factor", "mlp_multipliers", "ssm_in_multiplier", "ssm_multipliers",
                "ssm_out_multiplier"});
  also_inexact(model, "attention next to Mamba-2, simulated one after the other");
  model.assumptions.push_back(fmt::format(
      "/num_hidden_layers: each of the {} is simulated as two, Mamba-2 and then attention with its "
      "MLP",
      model.depth));
  model.formula = "2Vh + L(3hf + 2h + h(2q+2k) + Mamba-2) + h";
  return built(model);
}

/// Gated delta rules with MLPs, every fourth layer attention with norms of all queries and keys.
/// Source  OlmoHybridForCausalLM of the transformers library
Model read_olmo_hybrid(Config& config) {
  ModelDraft model = llama_with_biases(config);
  DeltaPart delta;
  const std::int64_t heads = model.attention.heads;
  delta.key_heads = config.positive_or("linear_num_key_heads", Limits::heads, heads);
  delta.value_heads = config.positive_or("linear_num_value_heads", Limits::heads, heads);
  delta.key_dim = config.positive_or("linear_key_head_dim", Limits::head_dim,
                                     3 * model.hidden / (4 * delta.key_heads));
  delta.value_dim =
      config.positive_or("linear_value_head_dim", Limits::head_dim, 2 * delta.key_dim);
  delta.taps = config.size("linear_conv_kernel_dim", most_taps_of_mamba);
  std::vector<bool> attends = every_nth(model.depth, 4);
  if (model.depth < 4) attends.back() = true;
  attends = attending(config, model.depth).value_or(attends);
  model.attention.qk_norm = true;
  mix_layers(model, attends, {delta, model.mlp});
  model.further.vector(std::ranges::count(attends, true) * (heads + model.attention.kv_heads - 2) *
                       model.attention.head_dim);
  heed(config, {"linear_a_log_max", "linear_a_log_min", "linear_allow_neg_eigval",
                "linear_dt_init_floor", "linear_dt_max", "linear_dt_min"});
  also_inexact(
      model,
      "norms of outputs in attention layers, priced as norms of inputs; norms over all heads "
      "at once");
  model.formula = "2Vh + L(3hf + 2h) + attention layers*(4hh + 2h) + delta layers + h";
  return built(model);
}

/// Latent attention with a gate for each head every few layers, else Kimi's delta rule with a decay
/// and a gate of full rank; experts after the first dense layers. Without the layer that predicts a
/// further token, which the class does not have.
/// Source  Ling Team 2025, Ling 2.5; BailingHybridForCausalLM of the transformers library
Model read_bailing_hybrid(Config& config) {
  const std::int64_t n = config.size("num_attention_heads", Limits::heads);
  DeltaPart delta{.key_heads = n, .value_heads = n};
  // The class overwrites head_dim by the rotated part's, and keeps the delta rule's under the other
  // name.
  delta.key_dim = delta.value_dim = config.size({"linear_head_dim", "head_dim"}, Limits::head_dim);
  delta.taps =
      config.size({"short_conv_kernel_size", "linear_conv_kernel_dim"}, most_taps_of_mamba);
  ModelDraft model = llama_like(config);
  const bool bias = config.flag("attention_bias", false);
  read_latents(config, model.attention);
  config.assume({{"num_experts_per_tok",
                  config.size({"num_experts_per_token", "num_experts_per_tok"}, Limits::experts)}});
  read_expert_counts(config, model, {"num_experts", "num_local_experts"});
  MlpPart mlp = model.mlp;
  mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.experts.mlp = model.mlp;
  model.experts.mlp.width = config.size("moe_intermediate_size", Limits::expert_hidden);
  model.experts.shared_width =
      model.experts.mlp.width *
      config.size({"num_shared_experts", "n_shared_experts"}, Limits::experts);
  model.experts.routing.score = Routing::Score::sigmoid;
  model.experts.routing.corrected = true;
  const auto attends =
      attending(config, model.depth)
          .value_or(every_nth(model.depth, config.size("layer_group_size", Limits::layers)));
  const std::int64_t first = config.size_or("first_k_dense_replace", Limits::layers, 0);
  const auto kinds = config.kinds("mlp_layer_types", model.depth, {"dense", "sparse"});
  for (std::int64_t i = 0; i < model.depth; ++i) {
    const auto at = static_cast<std::size_t>(i);
    Layer layer{delta, model.experts};
    if (attends[at]) layer.mixer = model.attention;
    if (kinds ? (*kinds)[at] == 0 : i < first) layer.channel = mlp;
    model.layers.push_back(layer);
  }
  const auto latent = std::ranges::count(attends, true);
  const auto decays = model.depth - latent, widened = delta.values() - delta.value_heads;
  model.further.matrix(latent * model.hidden * n + decays * model.hidden * widened);
  model.further.vector(decays * widened);
  if (bias) {
    const LatentAttention& of = *model.attention.latents;
    model.further.vector(latent * (of.query_rank + of.kv_rank + of.rotary_dim + model.hidden));
  }
  heed(config, {"kda_lower_bound", "kda_safe_gate", "layer_group_size", "linear_head_dim",
                "linear_num_heads", "linear_conv_kernel_dim", "model_max_length", "moe_renormalize",
                "mtp_loss_scaling_factor", "num_expert_group", "n_shared_experts",
                "num_experts_per_token", "num_key_value_heads", "qk_head_dim", "head_dim"});
  also_inexact(model,
               "gates of heads and a decay of full rank, which have no kernels of their own");
  model.formula =
      "2Vh + latent attention layers + delta layers + L(2h + hE + E*3hf + shared) + h, without MTP";
  return without_prediction(config, built(model), {"num_mtp_layers", "num_nextn_predict_layers"});
}

/// Gated convolutions, full attention and attention to a window, with a gate for each head and
/// norms of each part's output.
/// Source  Lfm3ForCausalLM of the transformers library
Model read_lfm3(Config& config) {
  ModelDraft model = llama_with_biases(config);
  const std::int64_t h = model.hidden;
  model.attention.qk_norm = true;
  model.norms.sandwich = config.flag("use_sandwich_norm", true);
  AttentionPart narrow = model.attention;
  narrow.window = config.size_or("sliding_window", Limits::positions, 0);
  CountedPart convolution{"gated convolution"};
  convolution.count.matrix(4 * h * h);
  convolution.count.vector(h * config.size("conv_L_cache", most_taps_of_mamba));
  if (config.flag("conv_bias", false)) convolution.count.vector(5 * h);
  const auto kinds =
      config.kinds("layer_types", model.depth, {"full_attention", "sliding_attention", "conv"});
  std::int64_t attends = 0;
  for (std::int64_t i = 0; i < model.depth; ++i) {
    const std::size_t usual = i % 4 == 2 ? 0 : i % 4 == 0 && i > 0 ? 1 : 2;
    const std::size_t kind = kinds ? (*kinds)[static_cast<std::size_t>(i)] : usual;
    Layer layer{model.attention, model.mlp};
    if (kind == 1) layer.mixer = narrow;
    if (kind == 2) layer.mixer = convolution;
    attends += kind < 2 ? 1 : 0;
    model.layers.push_back(layer);
  }
  if (config.flag("use_attention_gate", true)) {
    model.further.matrix(attends * h * model.attention.heads);
  }
  if (attends < model.depth) {
    model.not_simulated = "gated convolutions are counted, not yet simulated";
  }
  also_inexact(model, "gates of heads");
  return built(model);
}

/// Attention on convolved queries and keys, half of whose values are of the token before; a router
/// that is an MLP of width r; a scale and a shift of both sides of every sum. Of q and k columns,
/// c and d taps, n heads of keys:
///   h (q + 2 k) + q h + (q + k)(c + 1) + (q + k)(d_h d + 1) + n
///   h r + 2 r r + r (E + 1) + 4 r    of the router
/// Source  Zyphra 2025, ZAYA1; ZayaForCausalLM of the transformers library
Model read_zaya(Config& config) {
  ModelDraft model = llama_like(config);
  read_expert_counts(config, model, {"num_experts", "num_local_experts"});
  const std::int64_t h = model.hidden, q = model.attention.query_columns(),
                     k = model.attention.key_columns();
  const bool bias = config.flag("attention_bias", false);
  const std::int64_t first = config.size("cca_time0", most_taps_of_mamba);
  const std::int64_t second = config.size("cca_time1", most_taps_of_mamba);
  CountedPart mixer{"convolved attention"};
  mixer.count.matrix(h * (q + 2 * k) + q * h + (q + k) * model.attention.head_dim * second);
  mixer.count.vector((q + k) * (first + 2) + model.attention.kv_heads);
  if (bias) mixer.count.vector(q + 2 * k + h);
  const std::int64_t r = config.size("router_hidden_size", Limits::hidden);
  const std::int64_t width = config.size("moe_intermediate_size", Limits::expert_hidden);
  CountedPart experts{"experts behind an MLP"};
  experts.count.experts(model.experts.count, model.experts.per_token, 3 * h * width);
  experts.count.matrix(h * r + 2 * r * r + r * (model.experts.count + 1));
  experts.count.vector(4 * r);
  for (std::int64_t i = 0; i < model.depth; ++i) model.layers.push_back({mixer, experts});
  model.further.vector(2 * h + model.depth * 8 * h + (model.depth - 1) * r);
  model.head.bias = config.flag("lm_head_bias", false);
  heed(config, {"layer_types", "sliding_window"});
  model.formula = "Vh (twice when untied) + L(attention + router + E*3hf + 10h) + 3h";
  model.not_simulated = "attention on convolved queries and keys is counted, not yet simulated";
  return built(model);
}

}  // namespace orrery::models
