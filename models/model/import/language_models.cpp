// Readers of the language models of multimodal files. The class of the language model alone has no
// head: in a file of its own, one that is untied is simulated, not counted.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "models/model/import/drafts.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {

/// Qwen2-VL, Qwen2.5-VL and the thinker of Qwen2.5-Omni: Qwen2's layers.
/// Source  Qwen2VLTextModel, Qwen2_5_VLTextModel and Qwen2_5OmniThinkerTextModel of the
///         transformers library
Model read_qwen2_vl(Config& config) {
  heed(config, {"vision_token_id", "tokens_per_second"});
  return inside_multimodal(config, read_qwen2(config));
}

/// Source  Qwen3OmniMoeThinkerTextModel of the transformers library
Model read_qwen3_omni_moe(Config& config) {
  assume_head_dim(config);
  return inside_multimodal(config, read_qwen3_moe(config));
}

namespace {

/// A size of an encoder: what its object states, or else the class's default.
std::int64_t encoder_size(const std::optional<Node>& encoder, const char* key,
                          std::int64_t otherwise) {
  const auto stated = encoder ? encoder->find(key) : std::nullopt;
  return stated ? stated->integer(1, 1 << 20) : otherwise;
}

/// Phi-4's encoder of images with its pooling head and the two matrices that lead to the width h.
/// Of L layers of width e and MLPs of f, and P positions of patches of c numbers:
///   c e + e + P e + (L + 1) (4 e e + 4 e + 2 e f + f + e) + 4 e L + 5 e + 2 e + e h + h h + 2 h
std::int64_t images_of_phi4(const std::optional<Node>& vision, std::int64_t h) {
  const std::int64_t e = encoder_size(vision, "hidden_size", 1152);
  const std::int64_t f = encoder_size(vision, "intermediate_size", 4304);
  const std::int64_t layers = encoder_size(vision, "num_hidden_layers", 27);
  const std::int64_t side = encoder_size(vision, "patch_size", 14);
  const std::int64_t across = encoder_size(vision, "image_size", 448) / side;
  const std::int64_t columns = encoder_size(vision, "num_channels", 3) * side * side;
  const std::int64_t block = 4 * e * e + 4 * e + 2 * e * f + f + e;
  return columns * e + e + across * across * e + (layers + 1) * block + 4 * e * layers + 7 * e +
         e * h + h * h + 2 * h;
}

/// Phi-4's encoder of sound, conformer blocks after strided convolutions, and for sound with and
/// without images two matrices each that lead to the width h.
std::int64_t sound_of_phi4(const std::optional<Node>& sound, std::int64_t h) {
  const std::int64_t a = encoder_size(sound, "hidden_size", 1024);
  const std::int64_t f = encoder_size(sound, "intermediate_size", 1536);
  const std::int64_t heads = encoder_size(sound, "num_attention_heads", 16);
  const std::int64_t channels = encoder_size(sound, "nemo_conv_channels", 1024);
  const std::int64_t deep = a * encoder_size(sound, "depthwise_multiplier", 1);
  const std::int64_t out = encoder_size(sound, "depthwise_separable_out_channel", 1024);
  const std::int64_t wide = encoder_size(sound, "ext_pw_out_channel", 1024);
  const auto symmetric = sound ? sound->find("bias_symmetric") : std::nullopt;
  const std::int64_t sides = symmetric && symmetric->as<bool>() ? 1 : 2;
  std::int64_t bins = encoder_size(sound, "input_size", 80), halvings = 0;
  for (std::int64_t n = encoder_size(sound, "time_reduction", 8); n > 1; n /= 2, ++halvings) {
    bins = (bins + 1) / 2;
  }
  const std::int64_t mlp = 2 * a + a * 2 * f + 2 * f + f * a + a;
  const std::int64_t attention = 4 * a * (a / heads * heads) + 3 * (a / heads * heads) + a;
  const std::int64_t convolution = 2 * a + a * 2 * wide + 2 * wide + 2 * wide +
                                   deep * encoder_size(sound, "kernel_size", 3) + deep +
                                   deep * out + out + a * wide + wide;
  const std::int64_t front = 10 * channels +
                             (halvings - 1) * (10 * channels + channels * channels + channels) +
                             channels * bins * a + a;
  const std::int64_t projector = a * encoder_size(sound, "downsample_rate", 1) * h + h + h * h + h;
  return front + sides * encoder_size(sound, "bias_max_distance", 1000) * heads +
         encoder_size(sound, "num_blocks", 24) * (2 * mlp + attention + convolution + 4 * a) +
         2 * projector;
}

}  // namespace

/// Phi-3's layers; the class has its encoders of images and of sound, which count, too.
/// Source  Phi4MultimodalForCausalLM of the transformers library
Model read_phi4_multimodal(Config& config) {
  Model model = read_phi3(config);
  const auto vision = config.find("vision_config"), sound = config.find("audio_config");
  const std::int64_t encoders =
      images_of_phi4(vision, model.hidden) + sound_of_phi4(sound, model.hidden);
  model.further.total += encoders;
  model.parameters += encoders;
  model.formula += " + encoders of images and sound";
  model.assumptions.emplace_back(
      "encoders of images and sound are among the parameters, and not in the step");
  return model;
}

namespace {

ModelDraft glm_with_norms_after(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.attention.output_bias = model.mlp.bias = false;
  model.norms.sandwich = true;
  also_inexact(model, "rotary embedding on interleaved pairs");
  return model;
}

}  // namespace

/// GLM-4.1V: biases of queries, keys and values whatever the file says.
/// Source  Glm4vTextModel of the transformers library
Model read_glm4v(Config& config) {
  ModelDraft model = glm_with_norms_after(config);
  model.attention.qkv_bias = true;
  return inside_multimodal(config, built(model));
}

/// Source  GlmOcrTextModel of the transformers library
Model read_glm_ocr(Config& config) {
  ModelDraft model = glm_with_norms_after(config);
  model.attention.qkv_bias = false;
  return inside_multimodal(config, built(model));
}

/// Source  Glm4vMoeTextModel of the transformers library
Model read_glm4v_moe(Config& config) {
  ModelDraft model = glm4_moe_like(config);
  model.attention.qk_norm = false;
  return inside_multimodal(config, built(model));
}

/// Source  PaddleOCRTextModel of the transformers library
Model read_paddleocr_vl(Config& config) {
  return inside_multimodal(config, read_ernie4_5(config));
}

/// An MLP of two matrices.
/// Source  Cosmos3EdgeTextModel of the transformers library
Model read_cosmos3_edge(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.mlp.gated = false;
  return inside_multimodal(config, built(model));
}

/// Rows of the table for tokens of its own; norms of queries and keys of a head, or of all heads.
/// Source  Molmo2TextModel of the transformers library
Model read_molmo2(Config& config) {
  also_called(config, "attention_bias", {"qkv_bias"});
  ModelDraft model = llama_with_biases(config);
  model.attention.output_bias = model.mlp.bias = false;
  model.further.vector(config.size_or("additional_vocab_size", Limits::vocab, 0) * model.hidden);
  heed(config, {"rope_scaling_layers"});
  const auto norms = config.find("qk_norm_type");
  if (norms && norms->one_of({"qwen3", "olmo"}) == 1) {
    norm_all_heads(model);
  } else {
    model.attention.qk_norm = true;
  }
  model.norms.of_outputs = config.flag("norm_after", false);
  return inside_multimodal(config, built(model));
}

/// Each layer's MLP is scaled by what two matrices of rank 32 make of the time.
/// Source  VoxtralRealtimeTextModel of the transformers library
Model read_voxtral_realtime(Config& config) {
  constexpr std::int64_t rank = 32;
  ModelDraft model = llama_with_biases(config);
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias = false;
  model.attention.window = config.size_or("sliding_window", Limits::positions, 0);
  model.further.matrix(model.depth * 2 * rank * model.hidden);
  also_inexact(model, "a scale of each MLP's input");
  return inside_multimodal(config, built(model));
}

namespace {

/// The last layer attends to all tokens, and every fourth before it; others to a window.
void read_muse_window(Config& config, ModelDraft& model) {
  std::vector<bool> usual;
  for (std::int64_t i = 0; i < model.depth; ++i) usual.push_back((model.depth - 1 - i) % 4 == 0);
  read_window(config, model, usual);
  heed(config,
       {"qk_scale_factor", "output_multiplier", "post_norm_eps", "layer_rope_theta", "embed_norm"});
}

}  // namespace

/// Gated attention between two norms; those of queries and keys have no weights.
/// Source  MuseGlimmerTextModel of the transformers library
Model read_muse_glimmer(Config& config) {
  also_called(config, "hidden_act", {"hidden_activation"});
  ModelDraft model = llama_with_biases(config);
  refuse_biases(config, {"attention_bias"});
  model.mlp.bias = false;
  model.attention.gated = model.norms.sandwich = true;
  read_muse_window(config, model);
  also_inexact(model, "norms without weights, and of 1 + weight");
  return inside_multimodal(config, built(model));
}

/// Experts of a width of their own between two norms; of a layer's four norms that after attention
/// has no weights; the residual stream has a gate for each column after attention and after
/// experts. Source  MuseSparkTextModel of the transformers library
Model read_muse_spark(Config& config) {
  ModelDraft model =
      with_experts(config, {"num_local_experts", "num_experts"}, "moe_intermediate_size");
  sigmoid_routing(config, model);
  refuse_biases(config, {"attention_bias"});
  model.attention.gated = model.norms.sandwich = true;
  model.experts.narrow = config.size("moe_hidden_size", Limits::hidden);
  read_dense_layers(config, model, 0);
  read_muse_window(config, model);
  // Two gates less a norm without weights.
  model.further.vector(model.depth * model.hidden +
                       std::ranges::count(model.dense, false) * 2 * model.experts.narrow);
  heed(config, {"residual_gate_temperature"});
  also_inexact(model, "gates of the residual stream, norms around experts, and of 1 + weight");
  return inside_multimodal(config, built(model));
}

/// DeepSeek's experts with attention over heads to a window, outside which the tokens of the image
/// stay visible. Source  UnlimitedOcrTextModel of the transformers library
Model read_unlimited_ocr(Config& config) {
  also_called(config, "n_routed_experts", {"num_experts"});
  config.find("head_dim");
  ModelDraft model = with_experts(config, {"n_routed_experts"}, "moe_intermediate_size");
  refuse_biases(config, {"mlp_bias"});
  model.attention.head_dim = model.hidden / model.attention.heads;  // whatever the file says
  share_experts(model, config.size("n_shared_experts", Limits::experts));
  read_dense_layers(config, model, first_few(config, model));
  model.attention.window = config.size_or("sliding_window", Limits::positions, 0);
  const auto kinds =
      config.kinds("layer_types", model.depth, {"reference_sliding_attention", "full_attention"});
  if (kinds && model.attention.window > 0) {
    for (const std::size_t kind : *kinds) model.full.push_back(kind == 1);
  }
  heed(config, {"n_group", "topk_group", "topk_method"});
  also_inexact(model, "image tokens outside the window");
  return inside_multimodal(config, built(model));
}

/// Experts for tokens of text and others, of a width of their own, for those of images; both with a
/// router whose bias counts as a parameter.
/// Source  Ernie4_5_VLMoeTextModel of the transformers library
Model read_ernie4_5_vl_moe(Config& config) {
  const auto widths = config.find("moe_intermediate_size");
  const bool stated = widths && widths->is_array();
  const auto width = [&](std::size_t which, std::int64_t otherwise) {
    return stated ? widths->at(which).integer(1, Limits::expert_hidden) : otherwise;
  };
  also_called(config, "moe_num_experts", {"num_experts"});
  also_called(config, "moe_k", {"num_experts_per_tok"});
  config.assume({{"num_experts_per_tok", config.size("moe_k", Limits::experts)},
                 {"text_expert_width", width(0, 1536)}});
  ModelDraft model = with_experts(config, {"moe_num_experts"}, "text_expert_width");
  refuse_biases(config, {"use_bias"});
  share_experts(model, config.size_or("moe_num_shared_experts", Limits::experts, 0));
  read_dense_layers(config, model, 1);
  const std::int64_t sparse = std::ranges::count(model.dense, false), e = model.experts.count;
  const std::int64_t h = model.hidden;
  model.further.total += sparse * (2 * e + e * h + e * 3 * h * width(1, 512));
  heed(config, {"moe_norm_min", "moe_intermediate_size", "moe_layer_start_index",
                "moe_layer_end_index", "moe_layer_interval"});
  model.not_simulated = "experts for text and for images are counted, not yet simulated";
  return inside_multimodal(config, built(model));
}

namespace {

/// Rows of an image that cross-attention reads: the patches and one more of each of its tiles. A
/// file of the text alone has those of Llama 3.2's images, 560 pixels wide.
void read_rows_of_images(Config& config, ModelDraft& model) {
  const auto vision = config.find("vision_config");
  const std::int64_t side = encoder_size(vision, "image_size", vision ? 448 : 560);
  const std::int64_t across = side / encoder_size(vision, "patch_size", 14);
  const std::int64_t rows = encoder_size(vision, "max_num_tiles", 4) * (across * across + 1);
  if (across < 1 || rows > Limits::positions) {
    vision.value_or(config.type_node())
        .fail(fmt::format("makes {} rows of an image; expected 1 to {}", across < 1 ? 0 : rows,
                          Limits::positions));
  }
  EncoderPart encoder;
  encoder.seq_len = config.positive_or("source_len", Limits::positions, rows);
  encoder.length_assumed = !config.find("source_len");
  model.encoder = encoder;
  if (encoder.length_assumed) {
    model.assumptions.push_back(
        fmt::format("/source_len: {} assumed, the rows of one image of a sequence", rows));
  }
  model.assumptions.emplace_back(
      "/vision_config: the encoder of images and its projector are frozen and not in the step, "
      "which reads their rows");
}

}  // namespace

/// Layers 3, 8, 13 ... attend from the text to an image, with norms of queries and keys and a gate
/// each of attention and MLP; the table has 8 rows more than the head.
/// Source  MllamaForCausalLM of the transformers library
Model read_mllama(Config& config) {
  ModelDraft model = llama_with_biases(config);
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias = false;
  model.embedding.tied = false;  // whatever the file says
  std::vector<std::int64_t> crossing{3, 8, 13, 18, 23, 28, 33, 38};
  if (const auto listed = config.find("cross_attention_layers")) {
    crossing.clear();
    for (const Node& each : listed->elements()) crossing.push_back(each.integer(0, Limits::layers));
  }
  std::erase_if(crossing, [&](std::int64_t layer) { return layer >= model.depth; });
  model.further.vector(std::ssize(crossing) * (2 * model.attention.head_dim + 2) +
                       8 * model.hidden);
  if (crossing.empty()) return built(model);
  vary_layers(model, [&](std::int64_t i, Layer& layer) {
    if (std::ranges::count(crossing, i) == 0) return;
    layer.cross = CrossAttentionPart{.heads = model.attention.heads,
                                     .kv_heads = model.attention.kv_heads,
                                     .head_dim = model.attention.head_dim,
                                     .qkv_bias = false,
                                     .output_bias = false};
    layer.mixer = NoPart{};
  });
  read_rows_of_images(config, model);
  also_inexact(model, "norms of queries and keys of cross-attention, and its gates");
  return built(model);
}

}  // namespace orrery::models
