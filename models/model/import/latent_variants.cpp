// Readers of models with latent attention (MLA) that are not DeepSeek's V2 or V3: Youtu, Kimi
// Linear, LongCat, DeepSeek-V4.
#include <array>

#include "models/model/import/drafts.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

constexpr std::int64_t most_taps = 1 << 10;

}  // namespace

/// A dense decoder with latent attention.
/// Source  Tencent 2025, Youtu-LLM; YoutuForCausalLM of the transformers library
Model read_youtu(Config& config) {
  ModelDraft model = llama_with_biases(config);
  refuse_biases(config, {"attention_bias", "mlp_bias"});
  read_latents(config, model.attention);
  config.find("qk_head_dim");
  config.find("embedding_initializer_range");
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  if (!config.flag("rope_interleave", true)) {
    also_inexact(model, "rotary embedding on split halves (rope_interleave)");
  }
  return built(model);
}

/// Delta rule with a gate for each channel; H heads of width d, a of all heads, c taps.
///   h (3 a + H + 2 d) + 2 d a + a h  +  3 a c + a + H + d
DeltaPart read_kimi_delta(Config& config) {
  const auto nested = config.find("linear_attn_config");
  const auto of = [&](const char* inner, const char* key, std::int64_t high) {
    const auto found = nested ? nested->find(inner) : std::nullopt;
    return found ? found->integer(1, high) : config.size(key, high);
  };
  const std::int64_t d = of("head_dim", "linear_head_dim", Limits::head_dim);
  const std::int64_t heads = of("num_heads", "linear_num_heads", Limits::heads);
  const std::int64_t taps = of("short_conv_kernel_size", "linear_conv_kernel_dim", most_taps);
  for (const char* key : {"linear_head_dim", "linear_num_heads", "linear_conv_kernel_dim"}) {
    config.find(key);
  }
  return {.key_heads = heads,
          .key_dim = d,
          .value_heads = heads,
          .value_dim = d,
          .taps = taps,
          .gate_rank = d};
}

namespace {

/// Layers with latent attention: by `layer_types`, by `linear_attn_config`, or every fourth.
std::vector<bool> latent_layers(Config& config, std::int64_t layers) {
  std::vector<bool> latent;
  if (const auto kinds =
          config.kinds("layer_types", layers, {"full_attention", "linear_attention"})) {
    for (const std::size_t kind : *kinds) latent.push_back(kind == 0);
    return latent;
  }
  for (std::int64_t i = 0; i < layers; ++i) latent.push_back(i > 0 && i % 4 == 0);
  const auto nested = config.find("linear_attn_config");
  const auto listed = nested ? nested->find("full_attn_layers") : std::nullopt;
  if (!listed) return latent;
  latent.assign(static_cast<std::size_t>(layers), false);
  for (const Node& each : listed->elements()) {
    latent[static_cast<std::size_t>(each.integer(1, layers) - 1)] = true;
  }
  return latent;
}

/// Layers without experts: by `mlp_layer_types`, or else the first.
std::vector<bool> dense_kimi_layers(Config& config, std::int64_t layers) {
  const std::int64_t first = config.size_or("first_k_dense_replace", Limits::layers, 1);
  std::vector<bool> dense = dense_layers(layers, std::min(first, layers), 1);
  if (const auto kinds = config.kinds("mlp_layer_types", layers, {"dense", "sparse"})) {
    for (std::size_t i = 0; i < dense.size(); ++i) dense[i] = (*kinds)[i] == 0;
  }
  return dense;
}

}  // namespace

/// Source  Kimi Team 2025, arXiv 2510.26692; KimiLinearForCausalLM of the transformers library
Model read_kimi_linear(Config& config) {
  ModelDraft model = llama_like(config);
  refuse_biases(config, {"attention_bias", "mlp_bias"});
  read_latents(config, model.attention);
  config.assume({{"num_experts_per_tok",
                  config.size({"num_experts_per_token", "num_experts_per_tok"}, Limits::experts)}});
  read_expert_counts(config, model, {"num_experts", "num_local_experts"});
  for (const char* key :
       {"moe_layer_freq", "moe_renormalize", "moe_router_activation_func", "num_expert_group",
        "use_grouped_topk", "model_max_length", "mla_use_nope", "qk_head_dim", "head_dim"}) {
    config.find(key);
  }
  MlpPart mlp = model.mlp;
  mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.experts.mlp = model.mlp;
  model.experts.mlp.width = config.size("moe_intermediate_size", Limits::expert_hidden);
  model.experts.shared_width =
      model.experts.mlp.width *
      config.size({"num_shared_experts", "n_shared_experts"}, Limits::experts);
  const DeltaPart delta = read_kimi_delta(config);
  const std::vector<bool> latent = latent_layers(config, model.depth);
  const std::vector<bool> dense = dense_kimi_layers(config, model.depth);
  for (std::size_t i = 0; i < latent.size(); ++i) {
    Layer layer;
    if (latent[i]) layer.mixer = model.attention;
    if (!latent[i]) layer.mixer = delta;
    if (dense[i]) layer.channel = mlp;
    if (!dense[i]) layer.channel = model.experts;
    model.layers.push_back(layer);
  }
  model.embedding.tied = false;  // whatever the file says
  return built(model);
}

/// Two blocks of latent attention and MLP in each layer, experts beside the first of them. Some
/// experts do nothing; the transformers class has their up-projections all the same.
/// Source  Meituan 2025, arXiv 2509.01322; LongcatFlashForCausalLM of the transformers library
Model read_longcat_flash(Config& config) {
  config.assume(
      {{"num_hidden_layers", config.size({"num_layers", "num_hidden_layers"}, Limits::layers)},
       {"num_experts_per_tok", config.size({"moe_topk", "num_experts_per_tok"}, Limits::experts)}});
  config.assume({{"head_dim", 1}});  // read_latents says how wide
  ModelDraft model = llama_like(config);
  refuse_biases(config, {"attention_bias", "mlp_bias"});
  read_latents(config, model.attention);
  read_expert_counts(config, model, {"n_routed_experts", "num_local_experts"});
  const std::int64_t idle = config.size_or("zero_expert_num", Limits::experts, 0);
  config.find("zero_expert_type");
  config.find("qk_head_dim");
  const std::int64_t h = model.hidden;
  const std::int64_t width =
      config.size({"expert_ffn_hidden_size", "moe_intermediate_size"}, Limits::expert_hidden);
  MlpPart mlp = model.mlp;
  mlp.width = config.size({"ffn_hidden_size", "intermediate_size"}, Limits::ffn_hidden);
  const Tally block = models::tally_of(Layer{model.attention, mlp}, h);
  CountedPart part{"two blocks beside experts"};
  part.count.add(block, 2);
  part.count.matrix(h * (model.experts.count + idle));
  if (config.flag("router_bias", false)) part.count.vector(model.experts.count + idle);
  part.count.experts(model.experts.count, model.experts.per_token, 3 * h * width);
  part.count.total += idle * 2 * h * width;
  for (std::int64_t i = 0; i < model.depth; ++i) model.layers.push_back({NoPart{}, part});
  model.further.vector(3 * model.depth * h);  // four norms a layer
  model.not_simulated = "two blocks beside experts are counted, not yet simulated";
  return built(model);
}

namespace {

/// DeepSeek-V4's attention without its compressor: queries from a latent of rank r, one key that is
/// also the value, output by g groups of rank o. Source  DeepseekV4Attention
Tally shared_key_attention(Config& config, const ModelDraft& model, std::int64_t r) {
  const std::int64_t h = model.hidden, d = model.attention.head_dim;
  const std::int64_t queries = model.attention.heads * d;
  const std::int64_t outputs =
      config.size("o_groups", Limits::heads) * config.size("o_lora_rank", Limits::hidden);
  Tally sum;
  sum.matrix(h * r + r * queries + h * d +
             outputs / config.size("o_groups", Limits::heads) * queries + outputs * h);
  sum.vector(model.attention.heads + r + d);
  return sum;
}

/// What compresses n keys to one, and for n = 4 the indexer that selects among them.
Tally compressor(Config& config, const ModelDraft& model, std::int64_t r, bool selects,
                 std::int64_t n) {
  const std::int64_t h = model.hidden, columns = model.attention.head_dim * (selects ? 2 : 1);
  Tally sum;
  sum.matrix(2 * h * columns);
  sum.vector(n * columns + model.attention.head_dim);
  if (!selects) return sum;
  const std::int64_t heads = config.size("index_n_heads", Limits::heads);
  const std::int64_t width = config.size("index_head_dim", Limits::head_dim);
  sum.matrix(4 * h * width + r * heads * width + h * heads);
  sum.vector(2 * n * width + width);
  return sum;
}

/// A layer's compression: none (a window alone), with an indexer (4 to 1), or heavy (128 to 1).
std::vector<std::size_t> compressions(Config& config, std::int64_t layers) {
  const auto kinds = config.kinds(
      "layer_types", layers,
      {"sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"});
  if (kinds) return *kinds;
  std::vector<std::size_t> all;
  if (const auto ratios = config.find("compress_ratios")) {
    for (const Node& each : ratios->elements()) {
      const std::int64_t ratio = each.integer(0, 128);
      if (ratio != 0 && ratio != 4 && ratio != 128) each.fail_expected("0, 4 or 128");
      if (std::ssize(all) < layers) all.push_back(ratio == 0 ? 0 : ratio == 4 ? 1 : 2);
    }
    if (std::ssize(all) < layers) ratios->fail("has fewer entries than there are layers");
    return all;
  }
  for (std::int64_t i = 0; i < layers; ++i) all.push_back(i < 2 || i % 2 == 0 ? 2 : 1);
  return all;
}

}  // namespace

/// Compressed attention; m residual streams that are mixed around attention and experts. A layer's
/// mixing is 2 (m (m + 2) (m h + 1) + 3), the head's m m h + m + 1. Without MTP.
/// Source  DeepSeek-AI 2026, DeepSeek-V4; DeepseekV4ForCausalLM of the transformers library
Model read_deepseek_v4(Config& config) {
  ModelDraft model = llama_like(config);
  refuse_biases(config, {"attention_bias", "mlp_bias"});
  read_expert_counts(config, model, {"n_routed_experts", "num_local_experts"});
  model.experts.mlp = model.mlp;
  model.experts.mlp.width = config.size("moe_intermediate_size", Limits::expert_hidden);
  model.experts.shared_width = model.experts.mlp.width;
  const std::int64_t h = model.hidden, rank = config.size("q_lora_rank", Limits::hidden);
  const std::int64_t streams = config.size("hc_mult", 64);
  std::array<std::int64_t, 3> rates{0, 4, 128};
  if (const auto stated = config.find("compress_rates")) {
    rates[1] = stated->value_or("compressed_sparse_attention", std::int64_t{4});
    rates[2] = stated->value_or("heavily_compressed_attention", std::int64_t{128});
  }
  constexpr std::array names{"window attention", "compressed sparse attention",
                             "heavily compressed attention"};
  const Tally common = shared_key_attention(config, model, rank);
  for (const std::size_t kind : compressions(config, model.depth)) {
    CountedPart mixer{names[kind], common};
    if (kind > 0) mixer.count.add(compressor(config, model, rank, kind == 1, rates[kind]));
    model.layers.push_back({mixer, model.experts});
  }
  const std::int64_t rows = streams * (streams + 2);
  model.further.matrix(model.depth * 2 * rows * streams * h + streams * streams * h);
  model.further.vector(model.depth * 2 * (rows + 3) + streams + 1);
  for (const char* key :
       {"compress_ratios", "compress_rope_theta", "expert_dtype", "hc_eps", "hc_sinkhorn_iters",
        "index_topk", "mlp_layer_types", "n_shared_experts", "num_hash_layers",
        "num_nextn_predict_layers", "qk_rope_head_dim", "sliding_window", "layer_types"}) {
    config.find(key);
  }
  model.formula = "2Vh + L(compressed attention + streams + hE + (E+1)*3hf + 2h) + h, without MTP";
  model.not_simulated = "compressed attention is counted, not yet simulated";
  return built(model);
}

}  // namespace orrery::models
