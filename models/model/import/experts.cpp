// Readers of mixture-of-experts models with ordinary attention. A token's active parameters are the
// router, the experts that it is sent to, and the shared ones.
#include <fmt/format.h>

#include <algorithm>

#include "hardware/reading.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

constexpr const char* expert_formula =
    "Vh (twice when untied) + L(h(q+2k) + qh + norms + router hE + E*3hf + shared) + h";

/// Release 5 of the transformers library writes `num_local_experts` for every model; before it
/// `num_experts` was usual.
void read_experts(Config& config, ModelDraft& model, std::string_view width_key) {
  read_expert_counts(config, model, {"num_local_experts", "num_experts"});
  model.mlp.width = config.size(width_key, Limits::expert_hidden);
}

/// Layers of Llama 4 that attend to all tokens: those without rotary positions, every fourth if the
/// file does not list them.
/// Source  Llama4TextConfig of the transformers library, whose defaults these are
std::vector<bool> layers_without_chunks(Config& config, const ModelDraft& model) {
  const std::int64_t every = config.positive_or("no_rope_layer_interval", Limits::layers, 4);
  const auto rotated = config.find("no_rope_layers");
  if (const auto types = read_full_attention(config, model, "chunked_attention")) return *types;
  if (!rotated || rotated->elements().empty()) return every_nth(model.depth, every);
  std::vector<bool> full;
  for (const Node& each : rotated->elements()) full.push_back(each.integer(0, 1) == 0);
  if (std::ssize(full) != model.depth) {
    rotated->fail(fmt::format("has {} entries for {} layers", full.size(), model.depth));
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

std::vector<bool> layers_without_experts(Config& config, const ModelDraft& model) {
  std::vector<bool> dense =
      dense_layers(model.depth, 0, config.positive_or("decoder_sparse_step", Limits::layers, 1));
  if (const auto listed = config.find("mlp_only_layers")) {
    for (const Node& layer : listed->elements()) {
      dense[static_cast<std::size_t>(layer.integer(0, model.depth - 1))] = true;
    }
  }
  return dense;
}

/// Source  Jiang et al. 2024, arXiv 2401.04088
Model read_mixtral(Config& config) {
  ModelDraft model = llama_like(config);
  read_experts(config, model, "intermediate_size");
  model.attention.window = config.size_or("sliding_window", Limits::positions, 0);
  model.embedding.rotary.base = 1e6;  // the transformers library's default
  model.formula = expert_formula;
  return built(model);
}

/// Norms of width head_dim on queries and keys.
/// Source  Qwen Team 2025, arXiv 2505.09388
Model read_qwen3_moe(Config& config) {
  ModelDraft model = llama_like(config);
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
  model.dense = layers_without_experts(config, model);
  model.dense_width = config.size("intermediate_size", Limits::ffn_hidden);
  model.formula = expert_formula;
  return built(model);
}

/// One norm over all queries and one over all keys; the router's bias is a buffer, not a parameter.
Model read_minimax_m2(Config& config) {
  ModelDraft model = llama_like(config);
  read_experts(config, model, "intermediate_size");
  if (config.flag("use_qk_norm", true)) norm_all_heads(model);
  if (config.size_or("shared_intermediate_size", Limits::ffn_hidden, 0) != 0) {
    config.fail("shared_intermediate_size", "this type has no shared expert; expected 0");
  }
  model.formula = expert_formula;
  return built(model);
}

/// Biases in attention, router and experts; one learned sink per head; gates and values clamped. By
/// convention the router's biases count in the total but not in the active parameters.
/// Source  OpenAI 2025, arXiv 2508.10925
Model read_gpt_oss(Config& config) {
  ModelDraft model = llama_like(config);
  read_experts(config, model, "intermediate_size");
  config.find("experts_per_token");
  if (const auto limit = config.find("swiglu_limit")) {
    model.mlp.limit = hardware::within(*limit, 1e-3, 1e6);
  }
  model.attention.sinks = model.experts.router_bias = model.mlp.bias = model.mlp.clamped = true;
  model.attention.qkv_bias = model.attention.output_bias = config.flag("attention_bias", true);
  model.attention.window = config.size_or("sliding_window", Limits::positions, 0);
  model.full =
      read_full_attention(config, model, "sliding_attention").value_or(every_nth(model.depth, 2));
  model.formula =
      "Vh (twice when untied) + L(h(q+2k) + qh + q+2k + h + heads + 2h + hE + E + E(3hf + 2f+h)) + "
      "h";
  return built(model);
}

/// The language model alone. One shared expert besides the routed ones on every n-th layer, a
/// gated MLP on the others; norms of queries and keys have no weights. Three of four layers attend
/// within chunks of the sequence.
/// Source  the Llama 4 model card: 109 B (Scout) and 400 B (Maverick) with the vision encoder
Model read_llama4(Config& config) {
  ModelDraft model = llama_like(config);
  read_experts(config, model, "intermediate_size");
  const std::int64_t dense_width = config.size("intermediate_size_mlp", Limits::ffn_hidden);
  const std::int64_t step = config.size("interleave_moe_layer_step", Limits::layers);
  model.attention.qkv_bias = model.attention.output_bias = config.flag("attention_bias", false);
  config.find("use_qk_norm");
  model.attention.chunk = config.positive_or("attention_chunk_size", Limits::positions, 8192);
  model.full = layers_without_chunks(config, model);
  check_expert_layers(config, model.depth, step);
  also_inexact(model, "a sigmoid router");
  model.dense_width = dense_width;
  model.dense = dense_layers(model.depth, 0, step);
  model.experts.shared_width = model.mlp.width;
  model.formula = std::string{expert_formula} + ", language model only";
  return built(model);
}

}  // namespace orrery::models
