// Parameters of encoders of images as multimodal files state them in `vision_config`, and of the
// projectors after them. Of width h, MLP width f, L layers, c channels, patch p, n patches an
// image:
//   CLIP     c p p h + h + (n + 1) h + L (4 h h + 2 h f + biases + 4 h) + 4 h
//   SigLIP   c p p h + h + n h + the same layers + 2 h (+ a head)
// Source  the classes of these types in the transformers library, release 5.24
#include "models/model/whole_model.hpp"

#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "hardware/reading.hpp"
#include "models/model/counts.hpp"
#include "models/model/import/config.hpp"

namespace orrery::models {
namespace {

constexpr std::int64_t largest_side = 1 << 14, most_columns = 1 << 20;

/// Sizes of an encoder, with the defaults of its class.
struct Tower {
  const Node& node;

  std::int64_t size(const char* key, std::int64_t otherwise) const {
    return node.integer_or(key, 1, most_columns, otherwise);
  }
  bool flag(const char* key, bool otherwise) const { return node.value_or<bool>(key, otherwise); }
  /// A side, or the first of two that are equal.
  std::int64_t side(const char* key, std::int64_t otherwise) const {
    const auto found = node.find(key);
    if (!found) return otherwise;
    if (!found->is_array()) return found->integer(1, largest_side);
    const std::vector<Node> sides = found->elements();
    if (sides.size() != 2) found->fail_expected("one side, or two");
    const std::int64_t first = sides[0].integer(1, largest_side);
    if (sides[1].integer(1, largest_side) != first) found->fail_expected("two equal sides");
    return first;
  }
  std::int64_t width(std::int64_t otherwise) const { return size("hidden_size", otherwise); }
};

/// Matrices and biases of attention and an MLP of two matrices, and two layer norms.
std::int64_t plain_layer(std::int64_t h, std::int64_t f) {
  return 4 * h * h + 4 * h + 2 * h * f + f + h + 4 * h;
}

std::int64_t clip_tower(const Tower& of) {
  const std::int64_t h = of.width(768), f = of.size("intermediate_size", 3072);
  const std::int64_t patch = of.side("patch_size", 32), across = of.side("image_size", 224) / patch;
  return of.size("num_channels", 3) * patch * patch * h + h + (across * across + 1) * h +
         of.size("num_hidden_layers", 12) * plain_layer(h, f) + 4 * h;
}

/// A probe that attends to all patches, a norm and an MLP.
std::int64_t probe_head(std::int64_t h, std::int64_t f) {
  return h + 4 * h * h + 4 * h + 2 * h + 2 * h * f + f + h;
}

std::int64_t siglip_tower(const Tower& of, bool head, std::int64_t positions) {
  const std::int64_t h = of.width(768), f = of.size("intermediate_size", 3072);
  const std::int64_t patch = of.side("patch_size", 16), across = of.side("image_size", 224) / patch;
  const std::int64_t rows = positions > 0 ? positions : across * across;
  return of.size("num_channels", 3) * patch * patch * h + h + rows * h +
         of.size("num_hidden_layers", 12) * plain_layer(h, f) + 2 * h +
         (head ? probe_head(h, f) : 0);
}

std::int64_t idefics_tower(const Tower& of) {
  const std::int64_t h = of.width(1152), f = of.size("intermediate_size", 3072);
  const std::int64_t patch = of.side("patch_size", 32), across = of.side("image_size", 224) / patch;
  return of.size("num_channels", 3) * patch * patch * h + h + across * across * h +
         of.size("num_hidden_layers", 12) * plain_layer(h, f) + 2 * h;
}

std::int64_t intern_tower(const Tower& of) {
  const std::int64_t h = of.width(1024), f = of.size("intermediate_size", 4096);
  const std::int64_t patch = of.side("patch_size", 14), across = of.side("image_size", 448) / patch;
  const std::int64_t norm =
      of.node.value_or<std::string>("norm_type", "layer_norm") == "layer_norm" ? 2 * h : h;
  std::int64_t layer = 4 * h * h + h + 2 * h * f + f + h + 2 * norm + 2 * h;
  if (of.flag("attention_bias", false)) layer += 3 * h;
  if (of.flag("use_qk_norm", false)) layer += 2 * h;
  std::int64_t sum = of.size("num_channels", 3) * patch * patch * h + h + h +
                     of.size("num_hidden_layers", 24) * layer;
  if (of.flag("use_absolute_position_embeddings", true)) sum += (across * across + 1) * h;
  if (of.flag("use_mask_token", false)) sum += h;
  return of.flag("use_mean_pooling", true) ? sum : sum + 2 * h;
}

std::int64_t pixtral_tower(const Tower& of) {
  const std::int64_t h = of.width(1024), f = of.size("intermediate_size", 4096);
  const std::int64_t patch = of.side("patch_size", 16);
  return of.size("num_channels", 3) * patch * patch * h + h +
         of.size("num_hidden_layers", 24) * (4 * h * h + 3 * h * f + 2 * h);
}

/// Rows of merged patches through two matrices of their own width.
std::int64_t merger(std::int64_t columns, std::int64_t out, std::int64_t norm) {
  return norm + columns * columns + columns + columns * out + out;
}

std::int64_t patches_in_time(const Tower& of, std::int64_t patch, std::int64_t width) {
  return of.size("in_channels", of.size("in_chans", 3)) * of.size("temporal_patch_size", 2) *
         patch * patch * width;
}

std::int64_t qwen2_tower(const Tower& of) {
  const std::int64_t h = of.size("embed_dim", 1280), patch = of.side("patch_size", 14);
  const auto ratio = of.node.find("mlp_ratio");
  const double wide = ratio ? hardware::within(*ratio, 1e-3, 64) : 4;
  const auto f = static_cast<std::int64_t>(static_cast<double>(h) * wide);
  const std::int64_t merged = of.size("spatial_merge_size", 2);
  return patches_in_time(of, patch, h) + of.size("depth", 32) * plain_layer(h, f) +
         merger(merged * merged * h, of.width(3584), 2 * h);
}

std::int64_t qwen2_5_tower(const Tower& of) {
  const std::int64_t h = of.width(3584), f = of.size("intermediate_size", 3420);
  const std::int64_t merged = of.size("spatial_merge_size", 2);
  const std::int64_t layer = 4 * h * h + 4 * h + 3 * h * f + 2 * f + h + 2 * h;
  return patches_in_time(of, of.side("patch_size", 14), h) + of.size("depth", 32) * layer +
         merger(merged * merged * h, of.size("out_hidden_size", 3584), h);
}

std::int64_t qwen3_tower(const Tower& of) {
  const std::int64_t h = of.width(1152), f = of.size("intermediate_size", 4304);
  const std::int64_t merged = of.size("spatial_merge_size", 2), columns = merged * merged * h;
  const std::int64_t out = of.size("out_hidden_size", 3584);
  const auto stacked = of.node.find("deepstack_visual_indexes");
  const std::int64_t more = stacked ? std::ssize(stacked->elements()) : 3;
  return patches_in_time(of, of.side("patch_size", 16), h) + h +
         of.size("num_position_embeddings", 2304) * h + of.size("depth", 27) * plain_layer(h, f) +
         merger(columns, out, 2 * h) + more * merger(columns, out, 2 * columns);
}

/// nullopt: an encoder that is not known.
std::optional<std::int64_t> tower_parameters(const Node& vision, std::string_view outer) {
  const Tower of{vision};
  if (outer == "qwen2_vl") return qwen2_tower(of);
  if (outer == "qwen2_5_vl") return qwen2_5_tower(of);
  if (outer == "qwen3_vl" || outer == "qwen3_vl_moe") return qwen3_tower(of);
  if (outer == "idefics3" || outer == "smolvlm") return idefics_tower(of);
  if (outer == "clip" || outer == "metaclip_2") return clip_tower(of);
  if (outer == "siglip") return siglip_tower(of, of.flag("vision_use_head", true), 0);
  if (outer == "siglip2") {
    return siglip_tower(of, of.flag("vision_use_head", true), of.size("num_patches", 256));
  }
  const auto type = vision.value_or<std::string>("model_type", "");
  if (type == "clip_vision_model") return clip_tower(of);
  if (type == "siglip_vision_model") {
    return siglip_tower(of, of.flag("vision_use_head", true), 0);
  }
  if (type == "internvl_vision") return intern_tower(of);
  if (type == "pixtral") return pixtral_tower(of);
  return std::nullopt;
}

/// Two matrices, into the text's width and on.
std::int64_t two_matrices(std::int64_t in, std::int64_t text, bool biases) {
  return in * text + text * text + (biases ? 2 * text : 0);
}

/// How many outputs of the encoder's layers are joined.
std::int64_t joined_layers(const Node& file) {
  const auto layers = file.find("vision_feature_layer");
  return layers && layers->is_array() ? std::ssize(layers->elements()) : 1;
}

/// What leads from the encoder's width to the text's; nullopt: a family that is not known.
std::optional<std::int64_t> projector_parameters(const Node& file, const Node& vision,
                                                 std::string_view outer, std::int64_t text) {
  const Tower of{vision};
  const auto side = [&](const char* key, std::int64_t otherwise) {
    const std::int64_t one = file.integer_or(key, 1, 64, otherwise);
    return one * one;
  };
  if (outer == "qwen2_vl" || outer == "qwen2_5_vl" || outer == "qwen3_vl" ||
      outer == "qwen3_vl_moe") {
    return 0;
  }
  const bool biases = file.value_or<bool>("multimodal_projector_bias", true);
  if (outer == "llava" || outer == "llava_next" || outer == "llava_onevision") {
    const std::int64_t newline = outer == "llava" ? 0 : text;
    const std::int64_t h = of.width(outer == "llava_onevision" ? 1152 : 1024);
    return two_matrices(h * joined_layers(file), text, biases) + newline;
  }
  if (outer == "internvl") {
    const auto ratio = file.find("downsample_ratio");
    const double share = ratio ? hardware::within(*ratio, 1e-2, 1) : 0.5;
    const std::int64_t in = of.width(1024) * std::llround(1 / share) * std::llround(1 / share);
    return 2 * in + two_matrices(in, text, true);
  }
  if (outer == "paligemma") {
    const std::int64_t out = file.integer_or("projection_dim", 1, most_columns, text);
    return of.width(768) * out + out;
  }
  if (outer == "idefics3" || outer == "smolvlm") {
    return of.width(1152) * side("scale_factor", 2) * text;
  }
  if (outer == "gemma3") return of.width(768) * text + of.width(768);
  if (outer == "deepseek_vl") return two_matrices(of.width(768), text, true);
  if (outer == "mistral3") {
    const std::int64_t h = of.width(1024);
    const bool has = file.value_or<bool>("multimodal_projector_bias", false);
    return h + side("spatial_merge_size", 2) * h * h +
           two_matrices(h * joined_layers(file), text, has);
  }
  return std::nullopt;
}

/// The two encoders of images and texts side by side.
std::optional<std::int64_t> contrastive(const Node& file, const Node& vision,
                                        std::string_view outer, const Model& model) {
  const auto tower = tower_parameters(vision, outer);
  if (!tower) return std::nullopt;
  const std::int64_t columns = Tower{vision}.width(768);
  if (first_class(file).ends_with("ForImageClassification")) {
    const auto labels = file.find("id2label");
    const std::int64_t count = labels && labels->is_object() ? std::ssize(labels->members()) : 2;
    return *tower + columns * count + count;
  }
  if (outer == "siglip" || outer == "siglip2") return model.parameters + *tower + 2;
  const std::int64_t joint = file.integer_or("projection_dim", 1, most_columns, 512);
  return model.parameters + *tower + (columns + model.hidden) * joint + 1;
}

}  // namespace

std::optional<WholeModel> whole_model(const Node& config, const Model& model) {
  const auto nested = [&](const char* key) {
    const auto found = config.find(key);
    return found && found->is_object() ? found : std::nullopt;
  };
  const auto vision = nested("vision_config"), sound = nested("audio_config");
  // A part for text alone has others next to it, under whatever key.
  if (!vision && !sound && !nested("text_config")) return std::nullopt;
  if (!vision || sound || config.has("format")) return WholeModel{};
  const auto outer = config.value_or<std::string>("model_type", "");
  if (outer == "clip" || outer == "metaclip_2" || outer == "siglip" || outer == "siglip2") {
    return WholeModel{contrastive(config, *vision, outer, model)};
  }
  const auto tower = tower_parameters(*vision, outer);
  const auto projector = projector_parameters(config, *vision, outer, model.hidden);
  if (!tower || !projector || model.front) return WholeModel{};
  std::int64_t text = model.parameters - count_prediction_parameters(model);
  const bool headless = outer == "qwen3_vl" || outer == "qwen3_vl_moe";  // read_qwen3_vl
  if (headless && !model.embedding.tied) text += model.embedding.vocab * model.hidden;
  return WholeModel{text + *tower + *projector};
}

}  // namespace orrery::models
