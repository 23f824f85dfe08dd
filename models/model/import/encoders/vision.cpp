// What a multimodal config.json says of its encoders in front of the language model. Text alone is
// trained unless `images`, a key of ours, says how many images a sequence has: then the encoder of
// `vision_config` is frozen in front, as that of Orrery's own JSON is (operations/front.cpp), with
// what `images` states in place of what the config does. Leaves out what single families add: a
// position for rows and columns, outputs of inner layers (Qwen3-VL), pooling without weights.

#include <fmt/format.h>

#include <array>

#include "models/model/counts.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

/// A size of an encoder, and its names in configs.
struct EncoderSize {
  const char* key;  // of `images`
  std::array<const char*, 4> names;
};
constexpr std::array<EncoderSize, 6> sizes{{
    {"layers", {"depth", "num_hidden_layers", "vt_num_hidden_layers", "num_layers"}},
    {"hidden", {"hidden_size", "vt_hidden_size", "embed_dim", "width"}},
    {"heads", {"num_heads", "num_attention_heads", "vt_num_attention_heads", "attention_heads"}},
    {"ffn_hidden", {"intermediate_size", "vt_intermediate_size", "mlp_dim", "ffn_hidden_size"}},
    {"patch", {"patch_size", "patch_size", "patch_size", "patch_size"}},
    {"channels", {"in_channels", "num_channels", "in_chans", "in_channels"}},
}};

std::optional<std::int64_t> size_in(const Node& encoder, const EncoderSize& size) {
  for (const char* name : size.names) {
    const auto member = encoder.find(name);
    if (member && member->json().is_number_integer()) return member->integer(1, 1 << 20);
  }
  return std::nullopt;
}

/// Side of the square of patches that become one row.
std::int64_t merged_side(const Node& encoder) {
  for (const char* name : {"spatial_merge_size", "pooling_kernel_size"}) {
    if (const auto member = encoder.find(name)) return member->integer(1, 64);
  }
  const auto kernel = encoder.find("merge_kernel_size");
  return kernel && !kernel->elements().empty() ? kernel->elements()[0].integer(1, 64) : 1;
}

/// `images` as Orrery's own JSON states it: the config's sizes, under those that are stated.
Json images_of(const Node& encoder, const Node& stated) {
  Json images = Json::object();
  for (const EncoderSize& each : sizes) {
    if (const auto found = size_in(encoder, each)) images[each.key] = *found;
  }
  const auto frames = encoder.find("temporal_patch_size");
  if (frames) images["channels"] = images.value("channels", 3) * frames->integer(1, 64);
  const auto side = encoder.find("image_size");
  if (side && side->json().is_number_integer() && images.contains("patch")) {
    const std::int64_t across = side->integer(1, 1 << 14) / images["patch"].get<std::int64_t>();
    if (across > 0) images["patches"] = across * across;
  }
  const std::int64_t merged = merged_side(encoder);
  images["merged"] = merged * merged;
  for (const auto& [key, value] : stated.members()) images[key] = value.json();
  return images;
}

std::string layers_in(const Node& encoder) {
  const auto layers = size_in(encoder, sizes[0]), width = size_in(encoder, sizes[1]);
  return layers && width ? fmt::format(", {} layers of width {},", *layers, *width) : "";
}

}  // namespace

void read_front(Config& config, Model& model) {
  const auto stated = config.find("images");
  if (const auto sound = config.find("audio_config"); sound && sound->is_object()) {
    model.assumptions.push_back(fmt::format(
        "/audio_config: samples without sound assumed: the encoder{} is not in the step",
        layers_in(*sound)));
  }
  const auto vision = config.find("vision_config");
  if (!vision || !vision->is_object()) {
    if (stated) stated->fail("there is no vision_config whose encoder the images would pass");
    return;
  }
  for (const char* key :
       {"downsample_ratio", "image_grid_pinpoints", "image_seq_length", "image_token_index",
        "mm_tokens_per_image", "multimodal_projector_bias", "projection_dim",
        "projector_hidden_act", "scale_factor", "spatial_merge_size", "video_token_index",
        "vision_aspect_ratio", "vision_feature_layer", "vision_feature_select_strategy"}) {
    config.find(key);  // of the projector: whole_model.cpp
  }
  if (model.encoder) {  // its cross-attention reads them, and its reader says what is assumed
    if (stated) stated->fail("cross-attention reads the images; /source_len states their rows");
    return;
  }
  if (!stated) {
    model.assumptions.push_back(fmt::format(
        R"(/vision_config: text alone assumed: the encoder of images{} and its projector are not in )"
        R"(the step; /model/images={{"patches": N}}, of one image, has it frozen in front)",
        layers_in(*vision)));
    return;
  }
  if (model.list) stated->fail("is not simulated with a list of operations");
  const Json images = images_of(*vision, *stated);
  read_images(Node{images, stated->file(), stated->pointer()}, model);
  model.parameters = count_parameters(model);
  model.active_parameters = count_active_parameters(model);
  model.formula += " + image encoder + projector";
}

}  // namespace orrery::models
