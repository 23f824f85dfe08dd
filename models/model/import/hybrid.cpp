// Readers of hybrid decoders, in which only some layers attend over the sequence and the others are
// linear attention or state-space layers: Qwen3-Next and its successor, Nemotron-H. Counted, not
// simulated; FLOPs leave out the arithmetic of the recurrent states.
#include <fmt/format.h>

#include <algorithm>

#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

constexpr std::int64_t most_convolution = 1 << 10;

/// Gated delta rule of one layer.
///   h (2 a + 2 v) + 2 h n + (2 a + v) c + 2 n + w + v h
/// a, v  widths of all keys and all values;  n  value heads of width w;  c  convolution taps
/// Source  Yang et al. 2024, arXiv 2412.06464; Qwen3NextGatedDeltaNet of the transformers library
CountedPart read_linear_attention(Config& config, std::int64_t hidden) {
  const std::int64_t keys = config.size("linear_num_key_heads", Limits::heads) *
                            config.size("linear_key_head_dim", Limits::head_dim);
  const std::int64_t heads = config.size("linear_num_value_heads", Limits::heads);
  const std::int64_t width = config.size("linear_value_head_dim", Limits::head_dim);
  const std::int64_t taps = config.size("linear_conv_kernel_dim", most_convolution);
  const std::int64_t values = heads * width;
  CountedPart part{"linear attention"};
  part.count.matrix(hidden * (2 * keys + 3 * values + 2 * heads));
  part.count.vector((2 * keys + values) * taps + 2 * heads + width);
  return part;
}

/// Mamba-2 of one layer.
///   h (2 d + 2 g s + n) + (d + 2 g s) (c + 1) + 3 n + d + d h
/// d  inner width = heads n times head width;  g  groups of state size s;  c  convolution taps
/// Source  Dao and Gu 2024, arXiv 2405.21060; NVIDIA 2025, arXiv 2504.03624
CountedPart read_mamba(Config& config, std::int64_t hidden) {
  const std::int64_t heads = config.size("mamba_num_heads", Limits::heads);
  const std::int64_t inner = heads * config.size("mamba_head_dim", Limits::head_dim);
  const std::int64_t state =
      config.size("n_groups", Limits::heads) * config.size("ssm_state_size", Limits::head_dim);
  const std::int64_t taps = config.size("conv_kernel", most_convolution);
  CountedPart part{"Mamba-2"};
  part.count.matrix(hidden * (2 * inner + 2 * state + heads + inner));
  part.count.vector((inner + 2 * state) * (taps + 1) + 3 * heads + inner);
  return part;
}

void refuse_biases(Config& config, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (config.flag(key, false)) {
      config.fail(key, "biases are not supported for this type; expected false");
    }
  }
}

/// A letter for each layer: M Mamba, * attention, - MLP, E experts. Older files have the letters,
/// newer ones a list of words; release 5 of the transformers library calls Mamba linear attention.
/// Errors: neither, or another number of layers than the file states.
std::string read_pattern(Config& config, std::int64_t layers) {
  constexpr std::string_view known = "M*-E", letter_of_word = "M*-EM*";
  const auto words = config.find("layers_block_type");
  const auto letters = config.find("hybrid_override_pattern");
  if (!words && !letters) {
    config.fail("hybrid_override_pattern",
                "hybrid_override_pattern or layers_block_type is missing");
  }
  std::string text;
  if (words) {
    for (const Node& each : words->elements()) {
      text += letter_of_word[each.one_of(
          {"mamba", "attention", "mlp", "moe", "linear_attention", "full_attention"})];
    }
  } else {
    text = letters->as<std::string>();
    if (text.find_first_not_of(known) != std::string::npos) {
      letters->fail_expected("a string of the letters M, *, - and E");
    }
  }
  if (std::ssize(text) != layers) {
    (words ? words : letters)
        ->fail(fmt::format("has {} {} for {} layers", text.size(), words ? "entries" : "letters",
                           layers));
  }
  return text;
}

/// Ungated experts, besides shared ones of full width; some models narrow the experts' input by a
/// down-projection and widen their output by an up-projection.
std::variant<NoPart, MlpPart, ExpertsPart, CountedPart> read_ungated_experts(
    Config& config, const ModelDraft& model) {
  ModelDraft own = model;
  read_expert_counts(config, own, {"n_routed_experts", "num_local_experts"});
  ExpertsPart experts = own.experts;
  experts.mlp = model.mlp;
  experts.mlp.width = config.size("moe_intermediate_size", Limits::expert_hidden);
  experts.shared_width = config.size("n_shared_experts", Limits::experts) *
                         config.size("moe_shared_expert_intermediate_size", Limits::expert_hidden);
  const std::int64_t narrow = config.size_or("moe_latent_size", Limits::hidden, 0);
  if (narrow == 0) return experts;
  CountedPart part{"experts of narrowed tokens"};
  part.count.matrix(model.hidden * (experts.count + 2 * narrow + 2 * experts.shared_width));
  part.count.experts(experts.count, experts.per_token, 2 * narrow * experts.mlp.width);
  return part;
}

}  // namespace

/// Every n-th layer has attention, all have routed experts and a gated shared one. The language
/// model alone, without multi-token prediction.
/// Source  published totals: Qwen3-Next 80B-A3B, Qwen3.5 397B-A17B (with the vision encoder)
Model read_qwen3_next(Config& config) {
  ModelDraft model = llama_like(config);
  model.attention.qk_norm = true;
  read_expert_counts(config, model, {"num_experts", "num_local_experts"});
  model.mlp.width = config.size("moe_intermediate_size", Limits::expert_hidden);
  const std::int64_t shared = config.size("shared_expert_intermediate_size", Limits::expert_hidden);
  const std::int64_t step = config.positive_or("full_attention_interval", Limits::layers, 4);
  refuse_biases(config, {"attention_bias"});
  if (const auto dense = config.find("mlp_only_layers"); dense && !dense->elements().empty()) {
    dense->fail("layers without experts are not supported for this type; expected []");
  }
  for (const char* key : {"decoder_sparse_step", "intermediate_size", "use_sliding_window",
                          "attn_output_gate", "layer_types"}) {
    config.find(key);
  }
  model.experts.shared_width = shared;
  model.experts.mlp = model.mlp;
  const CountedPart linear = read_linear_attention(config, model.hidden);
  for (std::int64_t i = 1; i <= model.depth; ++i) {
    Layer layer{linear, model.experts};
    if (i % step == 0) layer.mixer = model.attention;
    model.layers.push_back(layer);
  }
  // The gate of the shared experts, and that of attention's output, as wide as the queries.
  model.further.matrix(model.depth * model.hidden +
                       model.depth / step * model.hidden * model.attention.query_columns());
  model.formula =
      "2Vh + attention layers*(h(3q+2k) + 2d) + others*(linear attention) + L(hE + E*3hf + 3hs + h "
      "+ "
      "2h) + h, language model only, without MTP";
  model.not_simulated = "linear attention and mixture of experts are counted, not yet simulated";
  return built(model);
}

/// Each layer is a Mamba, attention, MLP or expert layer after one norm, in the order of a pattern.
Model read_nemotron_h(Config& config) {
  ModelDraft model = llama_like(config);
  model.mlp.gated = false;
  model.attention.head_dim = config.size({"head_dim", "attention_head_dim"}, Limits::head_dim);
  refuse_biases(config, {"attention_bias", "mlp_bias", "use_bias", "mamba_proj_bias"});
  if (!config.flag("use_conv_bias", true)) {
    config.fail("use_conv_bias", "a convolution without bias is not supported; expected true");
  }
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.attention.window = config.size_or("sliding_window", Limits::positions, 0);
  const std::string pattern = read_pattern(config, model.depth);
  const auto has = [&](char letter) { return pattern.find(letter) != std::string::npos; };
  Layer mamba, experts;
  if (has('M')) mamba.mixer = read_mamba(config, model.hidden);
  if (has('E')) experts.channel = read_ungated_experts(config, model);
  for (const char letter : pattern) {
    if (letter == 'M') model.layers.push_back(mamba);
    if (letter == '*') model.layers.push_back({model.attention, NoPart{}});
    if (letter == '-') model.layers.push_back({NoPart{}, model.mlp});
    if (letter == 'E') model.layers.push_back(experts);
  }
  model.formula =
      "2Vh + L h + attention layers*h(2q+2k) + MLP layers*2hf + Mamba layers + expert layers*(hE + "
      "2hl + E*2lf + shared) + h, without MTP";
  model.not_simulated = "state-space layers are counted, not yet simulated";
  return built(model);
}

}  // namespace orrery::models
