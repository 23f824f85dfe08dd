// Readers of models with latent attention (MLA) that add to DeepSeek's layers: MiniCPM3, Mistral 4,
// Sarvam, A.X, dots3, Hunyuan 4, GLM-5, Mistral Large 4.
#include <algorithm>

#include "models/model/import/drafts.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

/// Layers that take the tokens that an earlier layer selected: those called "shared" by
/// `indexer_types`, or by the letters of `index_topk_pattern`; or else all but every n-th after the
/// first few; none without such keys.
std::vector<bool> shared_by(Config& config, std::int64_t layers) {
  std::vector<bool> shared(static_cast<std::size_t>(layers), false);
  const auto pattern = config.find("index_topk_pattern");
  const std::int64_t every = config.positive_or("index_topk_freq", Limits::layers, 1);
  const std::int64_t offset = config.size_or("index_skip_topk_offset", Limits::layers, 2);
  if (const auto kinds = config.kinds("indexer_types", layers, {"full", "shared"})) {
    for (std::size_t i = 0; i < shared.size(); ++i) shared[i] = (*kinds)[i] == 1;
  } else if (pattern) {
    const bool letters = pattern->is_string();
    const std::string text = letters ? pattern->as<std::string>() : "";
    const std::vector<Node> words = letters ? std::vector<Node>{} : pattern->elements();
    if (std::ssize(text) + std::ssize(words) != layers) {
      pattern->fail("expected an entry for each layer");
    }
    for (std::size_t i = 0; i < shared.size(); ++i) {
      shared[i] = letters ? text[i] == 'S' : words[i].one_of({"full", "shared"}) == 1;
    }
  } else {
    for (std::int64_t i = 0; i < layers; ++i) {
      const std::int64_t after = std::max<std::int64_t>(i - offset + 1, 0);
      shared[static_cast<std::size_t>(i)] = after % every != 0;
    }
  }
  return shared;
}

void share_indexer(Layer& layer, bool shared) {
  std::get<AttentionPart>(layer.mixer).indexer->shared = shared;
}

/// Residual streams of which a connection mixes m h columns by c learned rows, with `scales`.
///   c m h + c + scales
void add_connections(ModelDraft& model, std::int64_t count, std::int64_t streams, std::int64_t rows,
                     std::int64_t scales) {
  model.further.matrix(count * rows * streams * model.hidden);
  model.further.vector(count * (rows + scales));
}

}  // namespace

/// A dense decoder with latent attention; the residual stream, embeddings and logits are scaled.
/// Source  MiniCPM3ForCausalLM of the transformers library
Model read_minicpm3(Config& config) {
  const std::int64_t heads = config.size("num_attention_heads", Limits::heads);
  config.assume({{"v_head_dim", config.size("hidden_size", Limits::hidden) / heads},
                 {"head_dim", 1}});  // read_latents says how wide
  ModelDraft model = llama_with_biases(config);
  refuse_biases(config, {"attention_bias", "mlp_bias"});
  read_latents(config, model.attention);
  heed(config, {"scale_emb", "scale_depth", "dim_model_base", "qk_head_dim"});
  also_inexact(model, "multipliers of embeddings, residuals and logits");
  return built(model);
}

/// DeepSeek-V3's layers with other keys.
/// Source  SarvamMLAConfig of the transformers library, whose class is DeepSeek-V3's
Model read_sarvam_mla(Config& config) {
  also_called(config, "n_routed_experts", {"num_experts"});
  also_called(config, "n_shared_experts", {"num_shared_experts"});
  heed(config, {"q_head_dim", "head_dim"});
  return built(deepseek_like(config));
}

/// A norm after the experts.
/// Source  AXK1ForCausalLM of the transformers library
Model read_axk1(Config& config) {
  ModelDraft model = deepseek_like(config);
  model.further.vector(layers_with_experts(model) * model.hidden);
  also_inexact(model, "norms after experts");
  return built(model);
}

/// Indexers; norms with a gate of rank g; one matrix from the query's latent of rank r, before and
/// after its norm, to queries of width q and to a gate of attention's output of width o.
///   2 r (q + o) in place of r q;  2 h g a gated norm
/// Source  AXK2ForCausalLM of the transformers library
Model read_axk2(Config& config) {
  ModelDraft model = deepseek_like(config);
  model.attention.indexer = read_indexer(config);
  const AttentionPart& attention = model.attention;
  const std::int64_t r = attention.latents->query_rank, q = attention.query_columns();
  if (r == 0) config.fail("q_lora_rank", "this type needs a latent of queries");
  const std::int64_t o = attention.heads * attention.value_dim;
  const std::int64_t g = config.size("gated_norm_rank", Limits::hidden);
  model.further.matrix(model.depth * r * (q + 2 * o) +
                       (model.depth + layers_with_experts(model)) * 2 * model.hidden * g);
  heed(config, {"layer_types", "qk_head_dim"});
  also_inexact(model, "gates of norms and of attention's output from the query's latent");
  return built(model);
}

namespace {

/// Latent attention of a layer with a window: `swa_` keys, or what the file says of the layer.
AttentionPart sliding_latents(Config& config, const AttentionPart& usual, std::int64_t layer) {
  const auto own = of_layer(config, layer);
  const bool listed = config.find("per_layer_config").has_value();
  const auto of = [&](const char* key, const char* swa, std::int64_t high, std::int64_t same,
                      std::int64_t otherwise) {
    const auto found = own ? own->find(key) : std::nullopt;
    if (found) return found->integer(1, high);
    return listed ? same : config.positive_or(swa, high, otherwise);
  };
  AttentionPart part = usual;
  const std::int64_t rotated = usual.latents->rotary_dim;
  const std::int64_t plain = of("qk_nope_head_dim", "swa_qk_nope_head_dim", Limits::head_dim,
                                usual.head_dim - rotated, 192);
  const std::int64_t width = config.positive_or("swa_head_dim", Limits::head_dim, 256);
  part.heads = part.kv_heads =
      of("num_attention_heads", "swa_num_attention_heads", Limits::heads, usual.heads, 64);
  part.latents->rotary_dim = of("qk_rope_head_dim", "swa_qk_rope_head_dim", Limits::head_dim,
                                rotated, std::max<std::int64_t>(width - plain, 1));
  part.head_dim = plain + part.latents->rotary_dim;
  part.value_dim = of("v_head_dim", "swa_v_head_dim", Limits::head_dim, usual.value_dim, 128);
  part.latents->query_rank =
      of("q_lora_rank", "swa_q_lora_rank", Limits::hidden, usual.latents->query_rank, 1024);
  part.latents->kv_rank =
      of("kv_lora_rank", "swa_kv_lora_rank", Limits::hidden, usual.latents->kv_rank, 1024);
  return part;
}

}  // namespace

/// Latent attention to a window on three of four layers, of other widths, and with an indexer on
/// the others; a gate for each head, and a norm of the keys' rotated part.
/// Source  Dots3NoteForCausalLM of the transformers library
Model read_dots3_note(Config& config) {
  also_called(config, "sliding_window", {"sliding_window_size"});
  also_called(config, "shared_experts_intermediate_size", {"moe_shared_expert_intermediate_size"});
  if (!config.find("sliding_window")) config.assume({{"sliding_window", 512}});
  ModelDraft model = deepseek_like(config);
  model.experts.shared_width =
      config.size("n_shared_experts", Limits::experts) *
      config.size("shared_experts_intermediate_size", Limits::expert_hidden);
  const Indexer indexer = read_indexer(config);
  const auto stated = config.find("use_dsa");
  const bool older = stated || !config.find("per_layer_config");  // what it says holds for the list
  const bool all_index = !stated || stated->as<bool>();
  const bool slides = config.flag("use_sliding_window", true);
  const std::int64_t window = config.size("sliding_window", Limits::positions);
  const auto kinds = config.kinds("layer_types", model.depth,
                                  {"sliding_attention", "indexed_attention", "full_attention"});
  heed(config, {"swa_num_key_value_heads", "swa_rope_theta"});
  vary_layers(model, [&](std::int64_t i, Layer& layer) {
    const bool usual = slides && i >= 2 && i % 4 != 1;
    const bool narrow = kinds ? (*kinds)[static_cast<std::size_t>(i)] == 0 : usual;
    auto& attention = std::get<AttentionPart>(layer.mixer);
    if (narrow) {
      attention = sliding_latents(config, model.attention, i);
      attention.window = window;
    } else if (kinds && !older ? (*kinds)[static_cast<std::size_t>(i)] == 1 : all_index) {
      attention.indexer = indexer;
    }
    model.further.matrix(model.hidden * attention.heads);
    model.further.vector(attention.latents->rotary_dim);
  });
  also_inexact(model, "a gate for each head");
  return built(model);
}

/// m residual streams around layers of latent attention with indexers, sinks and a gate of its
/// output. The head mixes the streams, too:  m m h + m + 1
/// Source  HYV4ForCausalLM of the transformers library
Model read_hy_v4(Config& config) {
  ModelDraft model = deepseek_like(config);
  model.attention.indexer = read_indexer(config);
  model.attention.sinks = true;
  if (!config.find("mlp_layer_types")) {
    model.dense = dense_layers(model.depth, std::min<std::int64_t>(1, model.depth), 1);
  }
  std::vector<bool> shared(static_cast<std::size_t>(model.depth), false);
  if (const auto kinds = config.kinds("indexer_types", model.depth, {"full", "shared"})) {
    for (std::size_t i = 0; i < shared.size(); ++i) shared[i] = (*kinds)[i] == 1;
  } else {
    for (std::int64_t i = 1; i < model.depth; ++i) {
      shared[static_cast<std::size_t>(i)] = (i - 1) % 4 != 0;
    }
  }
  const std::int64_t m = config.size("hc_mult", 64);
  model.further.matrix(model.depth * model.hidden * model.attention.heads *
                       model.attention.value_dim);
  add_connections(model, 2 * model.depth, m, 2 * m, 2);
  add_connections(model, 1, m, m, 1);
  heed(config, {"hc_eps", "hc_magnitude", "learnable_sink_init", "layer_types"});
  vary_layers(model, [&](std::int64_t i, Layer& layer) {
    share_indexer(layer, shared[static_cast<std::size_t>(i)]);
  });
  model.not_simulated = "parallel residual streams are counted, not yet simulated";
  return built(model);
}
/// The language model of a multimodal file.
Model read_hy_v4_vl(Config& config) {
  return inside_multimodal(config, read_hy_v4(config));
}

/// m residual streams around Kimi's delta rules and, on every fourth layer, latent attention
/// without rotary positions, with an indexer of pooled keys:  p d + h d  more, p keys to one.
/// Source  Glm5NextTextModel of the transformers library
Model read_glm5_next(Config& config) {
  if (config.size_or("qk_rope_head_dim", Limits::head_dim, 0) != 0) {
    config.fail("qk_rope_head_dim", "this type does not rotate; expected 0");
  }
  const std::int64_t plain = config.size("qk_nope_head_dim", Limits::head_dim);
  config.assume({{"head_dim", plain}});
  heed(config, {"head_dim", "qk_head_dim"});
  ModelDraft model =
      with_experts(config, {"n_routed_experts", "num_local_experts"}, "moe_intermediate_size");
  refuse_true(config, {"attention_bias"}, "biases are not supported for this type");
  sigmoid_routing(config, model);
  model.attention.head_dim = plain;
  model.attention.value_dim = config.size("v_head_dim", Limits::head_dim);
  model.attention.latents =
      LatentAttention{.query_rank = config.size("q_lora_rank", Limits::hidden),
                      .kv_rank = config.size("kv_lora_rank", Limits::hidden),
                      .rotary_dim = 0};
  model.attention.indexer = read_indexer(config);
  share_experts(model, config.size("n_shared_experts", Limits::experts));
  read_dense_layers(config, model, std::min<std::int64_t>(3, model.depth));
  const DeltaPart delta = read_kimi_delta(config);
  const std::vector<bool> shared = shared_by(config, model.depth);
  const std::int64_t pooled = config.size("index_kpool", Limits::positions);
  const std::int64_t m = config.size("hc_mult", 64), d = model.attention.indexer->dim;
  const auto kinds = config.kinds("layer_types", model.depth,
                                  {"linear_attention", "indexed_attention", "full_attention"});
  vary_layers(model, [&](std::int64_t i, Layer& layer) {
    const auto at = static_cast<std::size_t>(i);
    if (kinds ? (*kinds)[at] == 0 : i % 4 != 3) {
      layer.mixer = delta;
      return;
    }
    share_indexer(layer, shared[at]);
    if (shared[at]) return;
    model.further.matrix(model.hidden * d);
    model.further.vector(pooled * d);
  });
  add_connections(model, 2 * model.depth, m, m * (m + 2), 3);
  heed(config,
       {"hc_eps", "hc_sinkhorn_iters", "linear_lower_bound", "index_kpool_always_select_tail"});
  model.not_simulated = "parallel residual streams are counted, not yet simulated";
  return inside_multimodal(config, built(model));
}

/// The language model: latent attention without a latent of queries, rotary positions on three of
/// four layers, learned scales and biases of softmaxes, indexers from a norm of the layer's input.
/// Layers may take an earlier layer's keys and values.
/// Source  MistralLarge4TextModel of the transformers library
Model read_mistral_large4(Config& config) {
  also_called(config, "n_routed_experts", {"num_experts"});
  ModelDraft model = deepseek_like(config);
  model.attention.indexer = read_indexer(config);
  const Indexer& indexer = *model.attention.indexer;
  const std::int64_t every = config.positive_or("no_rope_layer_interval", Limits::layers, 4);
  std::vector<bool> plain = every_nth(model.depth, every);
  if (const auto rotated = config.find("no_rope_layers")) {
    plain.clear();
    for (const Node& each : rotated->elements()) plain.push_back(each.integer(0, 1) == 0);
    if (std::ssize(plain) != model.depth) rotated->fail("expected an entry for each layer");
  }
  std::vector<std::int64_t> source;
  if (const auto listed = config.find("kv_source_layers")) {
    for (const Node& each : listed->elements()) source.push_back(each.integer(0, model.depth - 1));
    if (std::ssize(source) != model.depth) listed->fail("expected an entry for each layer");
  }
  const std::vector<bool> shared = shared_by(config, model.depth);
  const std::int64_t heads = model.attention.heads, h = model.hidden;
  const std::int64_t rotary = model.attention.latents->rotary_dim;
  const std::int64_t rank = model.attention.latents->kv_rank;
  model.further.vector(model.depth * 2 * heads + rotary / 2);
  bool takes = false;
  vary_layers(model, [&](std::int64_t i, Layer& layer) {
    const auto at = static_cast<std::size_t>(i);
    auto& attention = std::get<AttentionPart>(layer.mixer);
    if (plain[at]) attention.latents->rotary_dim = 0;
    share_indexer(layer, shared[at]);
    if (!shared[at]) model.further.vector(2 * h + 2 * indexer.heads);
    if (source.empty() || source[at] == i) return;
    takes = true;
    model.further.matrix(-h * (rank + attention.latents->rotary_dim));
    model.further.vector(-rank);
  });
  if (takes) {
    model.not_simulated = "layers that share keys and values are counted, not yet simulated";
  }
  heed(config, {"layer_types", "qk_head_dim"});
  also_inexact(model, "learned scales of softmaxes");
  return inside_multimodal(config, built(model));
}

}  // namespace orrery::models
