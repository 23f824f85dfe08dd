// Readers of mixture-of-experts models with ordinary attention. A token's active parameters are the
// router, the experts that it is sent to, and the shared ones.
#include <fmt/format.h>

#include <algorithm>

#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

constexpr const char* expert_formula =
    "Vh (twice when untied) + L(h(q+2k) + qh + norms + router hE + E*3hf + shared) + h";

/// Counts query, key, value and output projections and the two norms of every layer.
void tally_attention(Tally& tally, const Model& model, std::int64_t vectors_per_layer) {
  const std::int64_t q = model.attention.heads * model.attention.head_dim;
  const std::int64_t k = model.attention.kv_heads * model.attention.head_dim;
  tally.matrix(model.layers * (model.hidden * (q + 2 * k) + q * model.hidden));
  tally.vector(model.layers * (2 * model.hidden + vectors_per_layer));
  if (model.attention.qkv_bias) tally.vector(model.layers * (q + 2 * k));
  if (model.attention.output_bias) tally.vector(model.layers * model.hidden);
}

/// Counts router and gated experts of `layers` layers.
void tally_experts(Tally& tally, const Model& model, std::int64_t layers) {
  tally.matrix(layers * model.hidden * model.experts.count);
  tally.experts(layers * model.experts.count, layers * model.experts.per_token,
                3 * model.hidden * model.mlp.width);
}

/// Ends, attention, and layers with experts.
Tally tally_model(const Model& model, std::int64_t vectors_per_layer, std::int64_t sparse) {
  Tally tally;
  tally_ends(tally, model);
  tally_attention(tally, model, vectors_per_layer);
  tally_experts(tally, model, sparse);
  return tally;
}

/// Release 5 of the transformers library writes `num_local_experts` for every model; before it
/// `num_experts` was usual.
void read_experts(Config& config, Model& model, std::string_view width_key) {
  read_expert_counts(config, model, {"num_local_experts", "num_experts"});
  model.mlp.width = config.size(width_key, Limits::expert_hidden);
}

/// Number of layers of a Qwen model that have experts: every `decoder_sparse_step`-th, except those
/// listed. A model is simulated only if the listed layers are its first ones.
std::int64_t sparse_layers(Config& config, Model& model) {
  const std::int64_t step = config.positive_or("decoder_sparse_step", Limits::layers, 1);
  std::vector<bool> dense_layer(static_cast<std::size_t>(model.layers), false);
  if (const auto listed = config.find("mlp_only_layers")) {
    for (const Node& layer : listed->elements()) {
      dense_layer[static_cast<std::size_t>(layer.integer(0, model.layers - 1))] = true;
    }
  }
  std::int64_t count = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const bool on_step = (layer + 1) % step == 0;
    count += on_step && !dense_layer[static_cast<std::size_t>(layer)] ? 1 : 0;
  }
  model.experts.every = step;
  const auto first = std::ranges::find(dense_layer, false);
  model.experts.dense_first = first - dense_layer.begin();
  if (std::find(first, dense_layer.end(), true) != dense_layer.end()) {
    model.not_simulated = "experts on listed layers are counted, not yet simulated";
  }
  return count;
}

/// Layers of Llama 4 that attend to all tokens: those without rotary positions, every fourth if the
/// file does not list them.
/// Source  Llama4TextConfig of the transformers library, whose defaults these are
std::vector<bool> layers_without_chunks(Config& config, const Model& model) {
  const std::int64_t every = config.positive_or("no_rope_layer_interval", Limits::layers, 4);
  const auto rotated = config.find("no_rope_layers");
  if (const auto types = read_full_attention(config, model, "chunked_attention")) return *types;
  if (!rotated || rotated->elements().empty()) return every_nth(model.layers, every);
  std::vector<bool> full;
  for (const Node& each : rotated->elements()) full.push_back(each.integer(0, 1) == 0);
  if (std::ssize(full) != model.layers) {
    rotated->fail(fmt::format("has {} entries for {} layers", full.size(), model.layers));
  }
  return full;
}

/// Refuses a list of Llama 4's layers with experts that is not every `step`-th.
void check_expert_layers(Config& config, std::int64_t layers, std::int64_t step) {
  const auto listed = config.find("moe_layers");
  if (!listed) return;
  std::int64_t next = step - 1;
  for (const Node& each : listed->elements()) {
    if (each.integer(0, layers - 1) != next) {
      each.fail(fmt::format("expected layer {}, by interleave_moe_layer_step {}", next, step));
    }
    next += step;
  }
  if (next < layers) listed->fail(fmt::format("lacks layer {}", next));
}

}  // namespace

/// Source  Jiang et al. 2024, arXiv 2401.04088
Model read_mixtral(Config& config) {
  Model model = llama_like(config);
  read_experts(config, model, "intermediate_size");
  model.attention.window = config.size_or("sliding_window", Limits::positions, 0);
  model.embedding.rotary.base = 1e6;  // the transformers library's default
  return counted(model, tally_model(model, 0, model.layers), expert_formula);
}

/// Norms of width head_dim on queries and keys.
/// Source  Qwen Team 2025, arXiv 2505.09388
Model read_qwen3_moe(Config& config) {
  Model model = llama_like(config);
  read_experts(config, model, "moe_intermediate_size");
  model.attention.qkv_bias = model.attention.output_bias = config.flag("attention_bias", false);
  model.attention.qk_norm = true;
  model.experts.routing.normalised = config.flag("norm_topk_prob", false);
  const std::int64_t window = config.size_or("sliding_window", Limits::positions, 0);
  if (config.flag("use_sliding_window", false)) model.attention.window = window;  // on all layers
  config.find("max_window_layers");
  config.find("qkv_bias");
  config.find("use_qk_norm");
  if (config.size_or("shared_expert_intermediate_size", Limits::ffn_hidden, 0) != 0) {
    config.fail("shared_expert_intermediate_size", "this type has no shared expert; expected 0");
  }
  const std::int64_t sparse = sparse_layers(config, model);
  const std::int64_t dense_width = config.size("intermediate_size", Limits::ffn_hidden);
  model.experts.dense_width = dense_width;
  Tally tally = tally_model(model, 2 * model.attention.head_dim, sparse);
  tally.matrix((model.layers - sparse) * 3 * model.hidden * dense_width);
  return counted(model, tally, expert_formula);
}

/// One norm over all queries and one over all keys; the router's bias is a buffer, not a parameter.
Model read_minimax_m2(Config& config) {
  Model model = llama_like(config);
  read_experts(config, model, "intermediate_size");
  model.attention.qk_norm = config.flag("use_qk_norm", true);
  if (config.size_or("shared_intermediate_size", Limits::ffn_hidden, 0) != 0) {
    config.fail("shared_intermediate_size", "this type has no shared expert; expected 0");
  }
  const std::int64_t norms =
      model.attention.qk_norm
          ? (model.attention.heads + model.attention.kv_heads) * model.attention.head_dim
          : 0;
  model.not_simulated = "norms over all heads at once are counted, not yet simulated";
  return counted(model, tally_model(model, norms, model.layers), expert_formula);
}

/// Biases in attention, router and experts; one learned sink per head; gates and values clamped. By
/// convention the router's biases count in the total but not in the active parameters.
/// Source  OpenAI 2025, arXiv 2508.10925
Model read_gpt_oss(Config& config) {
  Model model = llama_like(config);
  read_experts(config, model, "intermediate_size");
  config.find("experts_per_token");
  config.find("swiglu_limit");
  model.attention.sinks = model.experts.router_bias = model.mlp.bias = model.mlp.clamped = true;
  model.attention.qkv_bias = model.attention.output_bias = config.flag("attention_bias", true);
  model.attention.window = config.size_or("sliding_window", Limits::positions, 0);
  model.attention.full =
      read_full_attention(config, model, "sliding_attention").value_or(every_nth(model.layers, 2));
  Tally tally;
  tally_ends(tally, model);
  tally_attention(tally, model, model.attention.heads);
  tally.matrix(model.layers * model.hidden * model.experts.count);
  tally.experts(model.layers * model.experts.count, 0, 0, 1);
  tally.experts(model.layers * model.experts.count, model.layers * model.experts.per_token,
                3 * model.hidden * model.mlp.width, 2 * model.mlp.width + model.hidden);
  return counted(model, tally,
                 "Vh (twice when untied) + L(h(q+2k) + qh + q+2k + h + heads + 2h + hE + E + "
                 "E(3hf + 2f+h)) + h");
}

/// The language model alone. One shared expert besides the routed ones on every n-th layer, a
/// gated MLP on the others; norms of queries and keys have no weights. Three of four layers attend
/// within chunks of the sequence.
/// Source  the Llama 4 model card: 109 B (Scout) and 400 B (Maverick) with the vision encoder
Model read_llama4(Config& config) {
  Model model = llama_like(config);
  read_experts(config, model, "intermediate_size");
  const std::int64_t dense_width = config.size("intermediate_size_mlp", Limits::ffn_hidden);
  const std::int64_t step = config.size("interleave_moe_layer_step", Limits::layers);
  config.find("attention_bias");
  config.find("use_qk_norm");
  model.attention.chunk = config.positive_or("attention_chunk_size", Limits::positions, 8192);
  model.attention.full = layers_without_chunks(config, model);
  check_expert_layers(config, model.layers, step);
  const std::int64_t sparse = model.layers / step;
  model.inexact = "a sigmoid router";
  model.experts.dense_width = dense_width;
  model.experts.shared_width = model.mlp.width;
  model.experts.every = step;
  Tally tally = tally_model(model, 0, sparse);
  tally.matrix(sparse * 3 * model.hidden * model.mlp.width);
  tally.matrix((model.layers - sparse) * 3 * model.hidden * dense_width);
  return counted(model, tally, std::string{expert_formula} + ", language model only");
}

}  // namespace orrery::models
