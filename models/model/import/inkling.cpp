// Readers of Inkling: attention with short convolutions of keys and values and scores by relative
// position, whose layers attend to a window but for every sixth; experts. They are counted only.
// Source  InklingForCausalLM, Inkling2ForCausalLM and Inkling2LoopForCausalLM of the transformers
//         library
#include <algorithm>

#include "models/model/import/drafts.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

constexpr std::int64_t most_kernel = 1 << 10;

/// What both generations of layers have.
struct InklingLayers {
  ModelDraft model;
  std::vector<bool> sliding;
  AttentionPart narrow;  // of layers with a window
  std::int64_t taps = 0, relative = 0, extent = 0;

  const AttentionPart& attention(std::size_t layer) const {
    return sliding[layer] ? narrow : model.attention;
  }
};

std::vector<bool> sliding_layers(Config& config, std::int64_t layers) {
  std::vector<bool> sliding;
  for (std::int64_t i = 0; i < layers; ++i) sliding.push_back((i + 1) % 6 != 0);
  if (const auto kinds = config.kinds("layer_types", layers, {"hybrid", "hybrid_sliding"})) {
    for (std::size_t i = 0; i < sliding.size(); ++i) sliding[i] = (*kinds)[i] == 1;
  } else if (const auto listed = config.find("local_layer_ids")) {
    sliding.assign(sliding.size(), false);
    for (const Node& each : listed->elements()) {
      sliding[static_cast<std::size_t>(each.integer(0, layers - 1))] = true;
    }
  }
  return sliding;
}

InklingLayers read_inkling_layers(Config& config) {
  also_called(config, "n_routed_experts", {"num_local_experts"});
  also_called(config, "sliding_window_size", {"sliding_window"});
  also_called(config, "conv_kernel_size", {"sconv_kernel_size"});
  InklingLayers of;
  of.model = with_experts(config, {"n_routed_experts"}, "moe_intermediate_size");
  ModelDraft& model = of.model;
  model.attention.qkv_bias = model.attention.output_bias = false;
  model.embedding.tied = false;  // whatever the file says
  model.embedding.positions = Positions::none;
  model.norms.embedding = true;
  of.sliding = sliding_layers(config, model.depth);
  of.narrow = model.attention;
  of.narrow.heads = config.size("swa_num_attention_heads", Limits::heads);
  of.narrow.kv_heads = config.size("swa_num_key_value_heads", Limits::heads);
  of.narrow.head_dim = config.size("swa_head_dim", Limits::head_dim);
  of.narrow.window = config.size("sliding_window_size", Limits::positions);
  of.taps = config.size("conv_kernel_size", most_kernel);
  of.relative = config.size("d_rel", Limits::head_dim);
  of.extent = config.size("rel_extent", Limits::positions);
  heed(config, {"log_scaling_alpha", "log_scaling_n_floor", "unpadded_vocab_size", "route_scale",
                "number_of_conv_states", "local_layer_ids", "hidden_act"});
  model.not_simulated = "short convolutions and relative scores are counted, not yet simulated";
  return of;
}

/// Scores by relative position of H heads, and convolutions of k columns of keys and of values by c
/// taps and of the outputs of attention and MLP.
///   h H r + r extent  +  2 k c + 2 h c
void add_relative_scores(InklingLayers& of, std::size_t layer) {
  ModelDraft& model = of.model;
  const AttentionPart& attention = of.attention(layer);
  const std::int64_t extent = of.sliding[layer] ? attention.window : of.extent;
  model.further.matrix(model.hidden * attention.heads * of.relative);
  model.further.vector(of.relative * extent +
                       2 * of.taps * (attention.key_columns() + model.hidden));
}

}  // namespace

/// The router scores shared experts, too; a scale of experts, or of a dense layer's MLP.
Model read_inkling(Config& config) {
  if (config.find("dense_intermediate_size")) {
    config.assume({{"moe_intermediate_size", config.size("intermediate_size", Limits::ffn_hidden)},
                   {"inner_size", config.size("dense_intermediate_size", Limits::ffn_hidden)}});
  } else {
    config.assume({{"inner_size", config.size("intermediate_size", Limits::ffn_hidden)}});
  }
  InklingLayers of = read_inkling_layers(config);
  ModelDraft& model = of.model;
  of.narrow.qk_norm = model.attention.qk_norm = true;
  const std::int64_t shared = config.size("n_shared_experts", Limits::experts);
  share_experts(model, shared);
  read_dense_layers(config, model,
                    std::min(model.depth, config.size_or("dense_mlp_idx", Limits::layers, 0)));
  model.dense_width = config.size("inner_size", Limits::ffn_hidden);
  vary_layers(model, [&](std::int64_t i, Layer& layer) {
    const auto at = static_cast<std::size_t>(i);
    layer.mixer = of.attention(at);
    add_relative_scores(of, at);
    model.further.vector(1);
    if (!model.dense[at]) model.further.matrix(shared * model.hidden);
  });
  heed(config, {"shared_expert_sink", "logits_mup_width_multiplier", "embedding_multiplier",
                "rms_norm_eps_moe_gate", "num_mtp_layers", "chain_hidden_post_norm",
                "mtp_hidden_states_first", "mtp_local_layer_ids"});
  return built(std::move(model));
}

namespace {

/// Inkling 2's layers: a gate of attention's output, sinks by the input, learned queries of what
/// earlier blocks of layers put out; in layers without a window norms of their own for queries,
/// keys and values, and taps that the input adds to.
InklingLayers read_second(Config& config) {
  also_called(config, "moe_intermediate_size", {"intermediate_size"});
  InklingLayers of = read_inkling_layers(config);
  ModelDraft& model = of.model;
  of.narrow.gated = model.attention.gated = true;
  const std::int64_t h = model.hidden;
  vary_layers(model, [&](std::int64_t i, Layer& layer) {
    const auto at = static_cast<std::size_t>(i);
    const AttentionPart& attention = of.attention(at);
    layer.mixer = attention;
    add_relative_scores(of, at);
    model.further.matrix(h * attention.heads);
    model.further.vector(attention.heads * (attention.head_dim + of.relative));
    if (!of.sliding[at]) model.further.matrix(2 * h * attention.kv_heads * of.taps);
    const std::int64_t queries = of.sliding[at] ? 1 : 3, norms = of.sliding[at] ? 0 : 2;
    model.further.vector(h * (1 + (i > 0 ? queries : 0) + norms));
  });
  const std::int64_t outputs =
      config.positive_or("unpadded_vocab_size", model.embedding.vocab, model.embedding.vocab);
  const std::int64_t absent = (model.embedding.vocab - outputs) * h;
  model.further.add({-absent, -absent, -absent});
  model.further.vector(h);  // the head's query
  heed(config, {"n_layers_per_attn_res_block", "qk_l2_clip_threshold", "rel_l2_clip_threshold",
                "mlp_gate_softcap", "mlp_up_softcap", "intermediate_size"});
  model.not_simulated =
      "short convolutions, relative scores and attention between layers are counted, not yet "
      "simulated";
  return of;
}

}  // namespace

Model read_inkling2(Config& config) {
  return built(read_second(config).model);
}

/// Layers in the middle run several times; each has four gates of rank r between passes, of 4 h r,
/// and four queries.
Model read_inkling2_loop(Config& config) {
  ModelDraft model = read_second(config).model;
  const auto nested = config.find("loop_config");
  const auto of = [&](const char* inner, const char* key, std::int64_t high) {
    const auto found = nested ? nested->find(inner) : std::nullopt;
    return found ? found->integer(1, high) : config.size(key, high);
  };
  const std::int64_t first = of("core_start", "loop_layer_index_start", Limits::layers);
  const std::int64_t end = of("core_end", "loop_layer_index_end", Limits::layers);
  const std::int64_t rank = of("gate_rank", "loop_gate_rank", Limits::hidden);
  if (end < first || end > model.depth) {
    config.fail("loop_layer_index_end", "is no layer after loop_layer_index_start");
  }
  const std::int64_t looped = end - first;
  model.further.matrix(looped * 16 * model.hidden * rank);
  model.further.vector(looped * 4 * model.hidden);
  heed(config,
       {"loop_num_passes", "loop_layer_index_start", "loop_layer_index_end", "loop_gate_rank"});
  model.not_simulated = "layers that run again are counted, not yet simulated";
  return built(model);
}

}  // namespace orrery::models
