// Readers of encoders of images whose stages differ in width: Swin, ConvNeXt; and BEiT, whose
// positions are of pairs of patches. Counted, not simulated.
#include <algorithm>

#include "hardware/reading.hpp"
#include "models/model/import/encoders/translator_kind.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

constexpr std::int64_t widest_image = 1 << 14, widest_patch = 1 << 10, widest_stage = 1 << 16;

/// Counts of stages, by the sum of their blocks.
class StageCounter {
 public:
  explicit StageCounter(Config& config) : config_{config} {
    model_.family = Family::other;
    model_.causal = false;
    model_.embedding.positions = Positions::none;
    model_.norms.final = false;
  }

  /// Integers of a list, from 1 to `high`.
  std::vector<std::int64_t> sizes(const char* key, std::int64_t high) {
    const auto listed = config_.find(key);
    if (!listed) config_.fail(key, std::string{key} + " is missing");
    std::vector<std::int64_t> all;
    for (const Node& each : listed->elements()) all.push_back(each.integer(1, high));
    if (all.empty()) listed->fail("is empty");
    return all;
  }
  /// Blocks of a stage, each of so many weights in matrices and so many others.
  void blocks(std::int64_t count, std::int64_t matrices, std::int64_t vectors) {
    for (std::int64_t i = 0; i < count; ++i) {
      CountedPart part{"block of a stage"};
      part.count.matrix(matrices);
      part.count.vector(vectors);
      parts_.push_back(part);
    }
  }
  void weights(std::int64_t matrices, std::int64_t vectors) {
    model_.further.matrix(matrices);
    model_.further.vector(vectors);
  }
  /// Errors: a class whose head is not known.
  Model done(std::int64_t width, const char* formula) {
    model_.hidden = width;
    model_.depth = std::ssize(parts_);
    for (CountedPart& part : parts_) {
      part.count.vector(-2 * width);  // the norm that a layer has, counted in the block
      model_.layers.push_back({part, NoPart{}});
    }
    model_.formula = formula;
    model_.not_simulated = "vision transformers are counted, not yet simulated";
    add_image_head(config_, model_, {.columns = width});
    return built(std::move(model_));
  }

 private:
  Config& config_;
  ModelDraft model_;
  std::vector<CountedPart> parts_;
};

std::int64_t columns_of_patch(Config& config) {
  const std::int64_t patch = config.size("patch_size", widest_patch);
  return config.positive_or("num_channels", widest_patch, 3) * patch * patch;
}

}  // namespace

/// Attention within windows of W x W patches; each stage halves the sides and doubles the width w.
///   block  4 w w + 4 w + 2 w f + f + w + 4 w + (2 W - 1)^2 n    n heads
///   between stages  8 w w + 8 w
/// Version 2 has no bias of keys, in place of the table a scale for each head and an MLP of 512,
/// and after a stage a norm of the output. Source  Liu et al. 2021, arXiv 2103.14030; Liu et al.
/// 2021, arXiv 2111.09883;
///         SwinForImageClassification and Swinv2ForImageClassification of the transformers library
Model read_swin(Config& config) {
  const bool second = config.type() == "swinv2";
  StageCounter counter{config};
  const std::vector<std::int64_t> depths = counter.sizes("depths", Limits::layers);
  const std::vector<std::int64_t> heads = counter.sizes("num_heads", Limits::heads);
  if (heads.size() != depths.size()) config.fail("num_heads", "has not one entry for each stage");
  if (depths.size() > 8) config.fail("depths", "has more than 8 stages");
  const auto ratio = config.find("mlp_ratio");
  const double wide = ratio ? hardware::within(*ratio, 1e-3, 64) : 4;
  const std::int64_t window = config.size("window_size", widest_patch);
  const bool bias = config.flag("qkv_bias", true);
  std::int64_t w = config.size("embed_dim", widest_stage);
  const std::int64_t patch = columns_of_patch(config);
  counter.weights(patch * w, 3 * w);
  if (config.flag("use_absolute_embeddings", false)) {
    const std::int64_t across =
        config.size("image_size", widest_image) / config.size("patch_size", widest_patch);
    counter.weights(0, (across * across + (second ? 1 : 0)) * w);
  }
  constexpr std::int64_t hidden_of_bias = 512;
  for (std::size_t i = 0; i < depths.size(); ++i) {
    const auto f = static_cast<std::int64_t>(static_cast<double>(w) * wide);
    const std::int64_t table = (2 * window - 1) * (2 * window - 1) * heads[i];
    const std::int64_t learned = heads[i] + 3 * hidden_of_bias + hidden_of_bias * heads[i];
    const std::int64_t biases = (bias ? (second ? 2 : 3) * w : 0) + w + f + w + 4 * w;
    counter.blocks(depths[i], 4 * w * w + 2 * w * f, biases + (second ? learned : table));
    if (i + 1 == depths.size()) break;
    counter.weights(8 * w * w, second ? 4 * w : 8 * w);
    w *= 2;
  }
  counter.weights(0, 2 * w);  // the last norm
  for (const char* key : {"encoder_stride", "hidden_size", "image_size", "num_layers", "path_norm",
                          "pretrained_window_sizes"}) {
    config.find(key);
  }
  return counter.done(w, "patches + stages*(4ww + 2wf + biases + positions) + merging + 2w");
}

/// Convolutions by channel of 7 x 7, and an MLP of four times the width; a scale of its output, or
/// in version 2 a norm of its inner columns.
///   block  49 w + w + 2 w + 8 w w + 5 w + w
/// Source  Liu et al. 2022, arXiv 2201.03545; Woo et al. 2023, arXiv 2301.00808;
///         ConvNextForImageClassification and ConvNextV2ForImageClassification of the transformers
///         library
Model read_convnext(Config& config) {
  const bool second = config.type() == "convnextv2";
  StageCounter counter{config};
  const std::vector<std::int64_t> depths = counter.sizes("depths", Limits::layers);
  const std::vector<std::int64_t> widths = counter.sizes("hidden_sizes", widest_stage);
  if (widths.size() != depths.size()) {
    config.fail("hidden_sizes", "has not one entry for each stage");
  }
  const auto scale = config.find("layer_scale_init_value");
  const bool scales = !second && (!scale || hardware::within(*scale, -1, 1e6) > 0);
  counter.weights(columns_of_patch(config) * widths[0], 3 * widths[0]);
  constexpr std::int64_t taps = 49;
  for (std::size_t i = 0; i < depths.size(); ++i) {
    const std::int64_t w = widths[i], before = i > 0 ? widths[i - 1] : 0;
    if (i > 0) counter.weights(4 * before * w, 2 * before + w);
    const std::int64_t own = second ? 8 * w : scales ? w : 0;
    counter.blocks(depths[i], taps * w + 8 * w * w, w + 2 * w + 5 * w + own);
  }
  counter.weights(0, 2 * widths.back());
  for (const char* key : {"image_size", "num_stages"}) config.find(key);
  return counter.done(widths.back(), "stem + stages*(49w + 8ww + biases) + downsampling + 2w");
}

/// The vision transformer without a bias of keys, with a scale of each part's columns and, where
/// the file says so, a bias for each pair of patches.
/// Source  Bao et al. 2021, arXiv 2106.08254; BeitForImageClassification and
///         Data2VecVisionForImageClassification of the transformers library
Model read_beit(Config& config) {
  StageCounter counter{config};
  const std::int64_t h = config.size("hidden_size", Limits::hidden);
  const std::int64_t f = config.size("intermediate_size", Limits::ffn_hidden);
  const std::int64_t layers = config.size("num_hidden_layers", Limits::layers);
  const std::int64_t heads = config.size("num_attention_heads", Limits::heads);
  const std::int64_t across =
      config.size("image_size", widest_image) / config.size("patch_size", widest_patch);
  counter.weights(columns_of_patch(config) * h, 2 * h + 2 * h);  // class token, last norm
  // data2vec's class without a head has no last norm if it would stand before the mean.
  const bool bare = first_class(config).ends_with("VisionModel");
  if (bare && config.flag("use_mean_pooling", true)) counter.weights(0, -2 * h);
  if (config.flag("use_mask_token", false)) counter.weights(0, h);
  if (config.flag("use_absolute_position_embeddings", false)) {
    counter.weights(0, (across * across + 1) * h);
  }
  const std::int64_t table = ((2 * across - 1) * (2 * across - 1) + 3) * heads;
  if (config.flag("use_shared_relative_position_bias", false)) counter.weights(0, table);
  const bool own = config.flag("use_relative_position_bias", false);
  const auto scale = config.find("layer_scale_init_value");
  const bool scales = !scale || hardware::within(*scale, -1, 1e6) > 0;
  counter.blocks(layers, 4 * h * h + 2 * h * f,
                 3 * h + f + h + 4 * h + (scales ? 2 * h : 0) + (own ? table : 0));
  for (const char* key :
       {"auxiliary_channels", "auxiliary_concat_input", "auxiliary_loss_weight",
        "auxiliary_num_convs", "hidden_act", "pool_scales", "semantic_loss_ignore_index",
        "use_auxiliary_head", "use_mean_pooling", "vocab_size", "add_fpn"}) {
    config.find(key);
  }
  return counter.done(h, "cpph + 2h + L(4hh + 2hf + biases + 4h + scales + positions) + 2h");
}

}  // namespace orrery::models
