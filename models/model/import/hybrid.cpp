// Readers of hybrid decoders, in which only some layers attend over the sequence and the others are
// delta rules or state-space layers: Qwen3-Next and its successor, Nemotron-H.
#include <fmt/format.h>

#include <algorithm>

#include "hardware/reading.hpp"
#include "models/model/import/drafts.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

constexpr std::int64_t most_convolution = 1 << 10, most_chunk = 1 << 14;

}  // namespace

DeltaPart read_delta(Config& config) {
  DeltaPart part;
  part.key_heads = config.size("linear_num_key_heads", Limits::heads);
  part.key_dim = config.size("linear_key_head_dim", Limits::head_dim);
  part.value_heads = config.size("linear_num_value_heads", Limits::heads);
  part.value_dim = config.size("linear_value_head_dim", Limits::head_dim);
  part.taps = config.size("linear_conv_kernel_dim", most_convolution);
  return part;
}

namespace {

Mamba2Part read_mamba(Config& config) {
  Mamba2Part part;
  part.heads = config.size("mamba_num_heads", Limits::heads);
  part.head_dim = config.size("mamba_head_dim", Limits::head_dim);
  part.groups = config.size("n_groups", Limits::heads);
  part.state = config.size("ssm_state_size", Limits::head_dim);
  part.taps = config.size("conv_kernel", most_convolution);
  part.chunk = config.positive_or("chunk_size", most_chunk, part.chunk);
  if (const auto least = config.find("time_step_min")) {
    part.least_step = hardware::within(*least, 0, 1);
  }
  return part;
}

constexpr std::string_view layer_letters = "M*-E";

/// Layers as letters: M Mamba, * attention, - MLP, E experts.
std::string read_letters(const Node& letters) {
  std::string text = letters.as<std::string>();
  if (text.find_first_not_of(layer_letters) != std::string::npos) {
    letters.fail_expected("a string of the letters M, *, - and E");
  }
  return text;
}

/// The same from words; release 5 of the transformers library calls Mamba linear attention.
std::string read_words(const Node& words) {
  constexpr std::string_view letter_of_word = "M*-EM*";
  std::string text;
  for (const Node& each : words.elements()) {
    text += letter_of_word[each.one_of(
        {"mamba", "attention", "mlp", "moe", "linear_attention", "full_attention"})];
  }
  return text;
}

/// A letter for each layer. Older files have the letters, newer ones a list of words.
/// Errors: neither, or another number of layers than the file states.
std::string read_pattern(Config& config, std::int64_t layers) {
  const auto words = config.find("layers_block_type");
  const auto letters = config.find("hybrid_override_pattern");
  if (!words && !letters) {
    config.fail("hybrid_override_pattern",
                "hybrid_override_pattern or layers_block_type is missing");
  }
  std::string text = words ? read_words(*words) : read_letters(*letters);
  if (std::ssize(text) != layers) {
    (words ? words : letters)
        ->fail(fmt::format("has {} {} for {} layers", text.size(), words ? "entries" : "letters",
                           layers));
  }
  return text;
}

/// Letters of the layers that predict a further token; none if the file states none.
std::string read_module_pattern(Config& config) {
  const auto words = config.find("mtp_layers_block_type");
  const auto letters = config.find("mtp_hybrid_override_pattern");
  if (words && words->is_array()) return read_words(*words);
  return letters && letters->is_string() ? read_letters(*letters) : std::string{};
}

/// Ungated experts, besides shared ones of full width; some models narrow the experts' input by a
/// down-projection and widen their output by an up-projection.
ExpertsPart read_ungated_experts(Config& config, const ModelDraft& model) {
  ModelDraft own = model;
  read_expert_counts(config, own, {"n_routed_experts", "num_local_experts"});
  read_routing(config, own);
  ExpertsPart experts = own.experts;
  experts.mlp = model.mlp;
  experts.mlp.width = config.size("moe_intermediate_size", Limits::expert_hidden);
  config.find("n_shared_experts");  // one MLP of that width, whatever their number
  experts.shared_width = config.size("moe_shared_expert_intermediate_size", Limits::expert_hidden);
  experts.narrow = config.size_or("moe_latent_size", Limits::hidden, 0);
  return experts;
}

}  // namespace

/// Every n-th layer has attention, all have routed experts and a gated shared one. The language
/// model alone, without multi-token prediction. Norms are of 1 + weight, except a delta rule's.
/// Source  published totals: Qwen3-Next 80B-A3B, Qwen3.5 397B-A17B (with the vision encoder)
Model read_qwen3_next(Config& config) {
  ModelDraft model = llama_like(config);
  model.attention.qk_norm = true;
  model.norms.offset = 1;
  read_expert_counts(config, model, {"num_experts", "num_local_experts"});
  model.experts.routing.normalised = config.flag("norm_topk_prob", true);
  model.mlp.width = config.size("moe_intermediate_size", Limits::expert_hidden);
  const std::int64_t shared = config.size("shared_expert_intermediate_size", Limits::expert_hidden);
  const std::int64_t step = config.positive_or("full_attention_interval", Limits::layers, 4);
  refuse_biases(config, {"attention_bias"});
  if (const auto dense = config.find("mlp_only_layers"); dense && !dense->elements().empty()) {
    dense->fail("layers without experts are not supported for this type; expected []");
  }
  if (config.positive_or("decoder_sparse_step", Limits::layers, 1) != 1) {
    config.fail("decoder_sparse_step", "layers without experts are not supported; expected 1");
  }
  for (const char* key :
       {"intermediate_size", "use_sliding_window", "attn_output_gate", "layer_types"}) {
    config.find(key);
  }
  model.experts.shared_width = shared;
  model.experts.mlp = model.mlp;
  model.experts.shared_gate = true;
  model.attention.gated = true;
  const DeltaPart linear = read_delta(config);
  for (std::int64_t i = 1; i <= model.depth; ++i) {
    Layer layer{linear, model.experts};
    if (i % step == 0) layer.mixer = model.attention;
    model.layers.push_back(layer);
  }
  model.formula =
      "2Vh + attention layers*(h(3q+2k) + 2d) + others*(linear attention) + L(hE + E*3hf + 3hs + "
      "h + 2h) + h, language model only, without MTP";
  return built(model);
}

/// Each layer is a Mamba, attention, MLP or expert layer after one norm, in the order of a pattern;
/// so are those of a module that predicts a further token. Attention has no positions.
/// Source  NVIDIA 2025, arXiv 2504.03624, section 2.1; NemotronHAttention of the transformers
///         library
Model read_nemotron_h(Config& config) {
  ModelDraft model = llama_like(config);
  model.embedding.positions = Positions::none;
  model.mlp.gated = false;
  model.mlp.activation = config.activation("mlp_hidden_act", Activation::relu2);
  for (const char* key : {"tie_word_embeddings", "rope_theta", "partial_rotary_factor",
                          "rope_scaling", "rope_parameters"}) {
    config.find(key);
  }
  model.embedding.tied = false;  // whatever the file says
  model.attention.head_dim = config.size({"head_dim", "attention_head_dim"}, Limits::head_dim);
  refuse_biases(config, {"attention_bias", "mlp_bias", "use_bias", "mamba_proj_bias"});
  if (!config.flag("use_conv_bias", true)) {
    config.fail("use_conv_bias", "a convolution without bias is not supported; expected true");
  }
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.attention.window = config.size_or("sliding_window", Limits::positions, 0);
  const std::string pattern = read_pattern(config, model.depth);
  const std::string module = read_module_pattern(config);
  if (!module.empty()) {
    model.prediction_layers = config.size_or("num_nextn_predict_layers", Limits::layers, 0);
    model.prediction_shared = config.flag("mtp_use_repeated_layer", false);
  }
  const auto has = [&](char letter) {
    return (pattern + module).find(letter) != std::string::npos;
  };
  Layer mamba, experts;
  if (has('M')) mamba.mixer = read_mamba(config);
  if (has('E')) experts.channel = read_ungated_experts(config, model);
  const auto layer_of = [&](char letter) -> Layer {
    if (letter == 'M') return mamba;
    if (letter == '*') return {model.attention, NoPart{}};
    return letter == 'E' ? experts : Layer{NoPart{}, model.mlp};
  };
  for (const char letter : pattern) model.layers.push_back(layer_of(letter));
  for (const char letter : module) model.prediction_module.push_back(layer_of(letter));
  model.formula =
      "2Vh + L h + attention layers*h(2q+2k) + MLP layers*2hf + Mamba layers + expert layers*(hE + "
      "2hl + E*2lf + shared) + h";
  if (model.prediction_layers > 0) model.formula += " + D(module + 2hh + norms)";
  return built(model);
}

}  // namespace orrery::models
