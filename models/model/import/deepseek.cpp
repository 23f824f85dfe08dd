// Readers of DeepSeek V2, V3 and models of their architecture: latent attention (MLA), a few dense
// layers, then layers with routed and shared experts, and multi-token prediction (MTP).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hardware/reading.hpp"
#include "models/model/counts.hpp"
#include "models/model/import/drafts.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {

void read_latents(Config& config, AttentionPart& attention) {
  LatentAttention latents;
  latents.query_rank = config.size_or("q_lora_rank", Limits::hidden, 0);
  latents.kv_rank = config.size("kv_lora_rank", Limits::hidden);
  const std::int64_t plain = config.size("qk_nope_head_dim", Limits::head_dim);
  latents.rotary_dim = config.size("qk_rope_head_dim", Limits::head_dim);
  attention.head_dim = plain + latents.rotary_dim;
  attention.value_dim = config.size("v_head_dim", Limits::head_dim);
  attention.latents = latents;
}

namespace {

constexpr std::int64_t most_groups = 64;  // the executor's kernel keeps a 64-bit mask of groups

}  // namespace

/// V2 scores experts by a softmax and does not normalise the weights; V3 and later models score by
/// sigmoids plus a bias, rank groups by their two best experts, and normalise the weights.
/// Errors: groups that do not divide the experts, or too few groups kept.
void read_routing(Config& config, ModelDraft& model) {
  const bool second = config.type() == "deepseek_v2";
  const double usual_scale = second || config.type() == "nemotron_h" ? 1 : 2.5;
  constexpr std::array scores{Routing::Score::softmax, Routing::Score::sigmoid};
  Routing& routing = model.experts.routing;
  const auto score = config.find("scoring_func");
  routing.score = score ? scores[score->one_of({"softmax", "sigmoid"})] : scores[second ? 0 : 1];
  const auto named = config.find("topk_method");
  enum Method : std::size_t { greedy, by_groups, by_bias };
  const std::size_t method = named ? named->one_of({"greedy", "group_limited_greedy", "noaux_tc"})
                                   : (second ? greedy : by_bias);
  routing.normalised = config.flag("norm_topk_prob", !second);
  const auto scale = config.find("routed_scaling_factor");
  routing.scale = scale ? hardware::within(*scale, 0, 1e6) : usual_scale;
  routing.corrected = method == by_bias;
  if (method != greedy) {
    routing.groups = config.positive_or("n_group", model.experts.count, 1);
    routing.groups_kept = config.positive_or("topk_group", routing.groups, 1);
  }
  if (model.experts.count % routing.groups != 0)
    config.fail("n_group", "does not divide the experts");
  const std::int64_t group = model.experts.count / routing.groups;
  routing.best_of_group = routing.corrected && routing.groups > 1 ? 2 : 1;
  if (routing.best_of_group > group)
    config.fail("n_group", "makes groups of one expert; expected at least 2 experts per group");
  if (routing.groups > most_groups) config.fail("n_group", "expected at most 64");
  if (routing.groups_kept * group < model.experts.per_token) {
    config.fail("topk_group", "keeps groups with fewer experts than num_experts_per_tok");
  }
}

namespace {

/// What the executor computes differently from such a config; empty: nothing.
std::string otherwise(Config& config, const Routing& routing) {
  if (!config.flag("rope_interleave", true))
    return "rotary embedding on split halves (rope_interleave)";
  const bool softmax = routing.score == Routing::Score::softmax;
  // The model's own code then leaves out the scale, the transformers library the normalisation.
  return softmax && routing.normalised ? "normalised softmax weights (norm_topk_prob)" : "";
}

/// The default of DeepSeek-V2 in the transformers library says of no token where it is sent.
void read_experts_of(Config& config, ModelDraft& model) {
  const std::initializer_list<std::string_view> keys{"n_routed_experts", "num_local_experts",
                                                     "num_routed_experts"};
  if (config.type() != "deepseek_v2" || config.find("num_experts_per_tok")) {
    read_expert_counts(config, model, keys);
    return;
  }
  model.experts.count = config.size(keys, Limits::experts);
  model.experts.per_token = 1;
  model.not_simulated = "num_experts_per_tok is not stated";
}

ModelDraft read_shape_and_experts(Config& config) {
  config.assume({{"head_dim", 1}});  // latents say how wide
  ModelDraft model = llama_like(config);
  model.mlp.width = config.size("moe_intermediate_size", Limits::expert_hidden);
  model.prediction_layers = config.size_or("num_nextn_predict_layers", Limits::layers, 0);
  read_experts_of(config, model);
  config.find("qk_head_dim");
  refuse_biases(config, {"attention_bias", "mlp_bias"});
  if (config.size_or("moe_layer_freq", Limits::layers, 1) != 1) {
    config.fail("moe_layer_freq", "experts on some layers only are not supported; expected 1");
  }
  return model;
}

/// Layers without experts, which come first: `first_k_dense_replace` of them, or those that
/// `mlp_layer_types` calls dense. Errors: a dense layer after one with experts.
std::int64_t first_dense(Config& config, const ModelDraft& model) {
  const auto listed = config.find("mlp_layer_types");
  if (!listed) return config.size_or("first_k_dense_replace", model.depth, 0);
  config.find("first_k_dense_replace");
  std::int64_t dense = 0, layer = 0;
  for (const Node& type : listed->elements()) {
    const bool sparse = type.one_of({"dense", "sparse"}) == 1;
    if (!sparse && dense++ < layer) type.fail("a dense layer after one with experts");
    ++layer;
  }
  if (layer != model.depth) {
    listed->fail(fmt::format("has {} entries for {} layers", layer, model.depth));
  }
  return dense;
}

}  // namespace

ModelDraft deepseek_like(Config& config) {
  ModelDraft model = read_shape_and_experts(config);
  read_latents(config, model.attention);
  const std::int64_t dense = first_dense(config, model);
  model.dense = dense_layers(model.depth, dense, 1);
  model.dense_width = config.size("intermediate_size", Limits::ffn_hidden);
  const std::int64_t shared =
      config.size_or("n_shared_experts", Limits::experts,
                     config.size_or("num_shared_experts", Limits::experts, 0));
  model.experts.shared_width = shared * model.mlp.width;
  const bool all_dense = dense == model.depth;
  if (!all_dense) read_routing(config, model);
  model.inexact = all_dense ? otherwise(config, {.score = Routing::Score::sigmoid})
                            : otherwise(config, model.experts.routing);
  model.formula =
      "2Vh + L(latent attention + 2h) + dense layers*3hF + sparse layers*(hE + (E + shared)*3hf) + "
      "h + D(sparse layer + 2hh + 3h)";
  return model;
}

Model read_deepseek(Config& config) {
  return built(deepseek_like(config));
}

Indexer read_indexer(Config& config) {
  Indexer indexer;
  indexer.heads = config.size("index_n_heads", Limits::heads);
  indexer.dim = config.size("index_head_dim", Limits::head_dim);
  indexer.top = config.positive_or("index_topk", Limits::positions, 2048);
  return indexer;
}

namespace {

/// Which layers take the tokens that an earlier layer selected, instead of an indexer of their own.
std::vector<bool> shared_indexers(Config& config, const ModelDraft& model) {
  for (const char* key : {"index_topk_freq", "index_skip_topk_offset", "index_topk_pattern",
                          "index_share_for_mtp_iteration", "layer_types"}) {
    config.find(key);
  }
  std::vector<bool> shared(static_cast<std::size_t>(model.depth), false);
  const auto listed = config.find("indexer_types");
  if (!listed) return shared;
  const std::vector<Node> types = listed->elements();
  if (std::ssize(types) != model.depth) {
    listed->fail(fmt::format("has {} entries for {} layers", types.size(), model.depth));
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    shared[i] = types[i].one_of({"full", "shared"}) == 1;
  }
  return shared;
}

}  // namespace

/// The same with indexers, which select the tokens to attend to.
///   r I d + h d + 2 d + h I      I heads of width d, from the query's latent of rank r
/// Source  DeepSeek-AI 2025, DeepSeek-V3.2-Exp, inference/model.py (class Indexer)
Model read_deepseek_sparse(Config& config) {
  ModelDraft model = deepseek_like(config);
  const Indexer indexer = read_indexer(config);
  config.find("indexer_rope_interleave");
  config.find("qk_head_dim");
  const std::vector<bool> shared = shared_indexers(config, model);
  model.formula += ", with the indexer";
  model.attention.indexer = indexer;
  Model all = built(std::move(model));
  LayerList layers;
  for (std::int64_t i = 0; i < all.layers.size(); ++i) {
    Layer layer = all.layers[i];
    std::get<AttentionPart>(layer.mixer).indexer->shared = shared[static_cast<std::size_t>(i)];
    layers.push_back(layer);
  }
  all.layers = std::move(layers);
  all.parameters = count_parameters(all);
  all.active_parameters = count_active_parameters(all);
  return all;
}

}  // namespace orrery::models
