// The reader of the vision transformer and of its relatives, with the head of the class that the
// file names.
#include "models/model/import/encoders/translator_kind.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

std::int64_t labels_of_images(Config& config) {
  const auto listed = config.find("id2label");
  const bool some = listed && listed->is_object() && !listed->members().empty();
  return config.positive_or("num_labels", Limits::vocab, some ? std::ssize(listed->members()) : 2);
}

}  // namespace

void add_image_head(Config& config, ModelDraft& model, const ImageHead& head) {
  const std::int64_t h = model.hidden, classes = labels_of_images(config);
  const std::string name = first_class(config);
  const auto classify = [&](std::int64_t times) {
    model.further.matrix(times * head.columns * classes);
    model.further.vector(times * classes);
    model.formula += " + classifier";
  };
  if (name.ends_with("ForImageClassificationWithTeacher")) return classify(2);
  if (name.ends_with("ForImageClassification")) return classify(1);
  if (name.empty()) return;
  if (name.ends_with("Model") || name.ends_with("Backbone")) {
    if (head.pools && name.ends_with("Model")) model.further.vector(h * h + h);
    return;
  }
  config.fail("architectures", "the head of class '" + name +
                                   "' is not known; expected a name that ends on one of "
                                   "ForImageClassification, ForImageClassificationWithTeacher, "
                                   "Model, Backbone");
}

/// Encoder of projected patches, one class token (DeiT: another to distil by; I-JEPA: none),
/// learned positions. Without a class in the file, no head.
///   c p p h + h  +  t h  +  (n + t) h  +  L (4 h h + 2 h f + biases + norms)  +  2 h
/// c channels, p patch, n = (image / patch)^2, t tokens
/// Source  Dosovitskiy et al. 2020, arXiv 2010.11929; Touvron et al. 2020, arXiv 2012.12877;
///         ViTForImageClassification and the classes of these types in the transformers library
Model read_vit(Config& config) {
  ModelDraft model;
  model.family = Family::other;
  model.causal = false;
  model.depth = config.size("num_hidden_layers", Limits::layers);
  model.hidden = config.size("hidden_size", Limits::hidden);
  model.attention.heads = config.size("num_attention_heads", Limits::heads);
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.mlp.activation = config.activation("hidden_act", Activation::gelu);
  model.attention.qkv_bias = config.flag("qkv_bias", true);
  fill_heads(config, model);
  const std::int64_t image = config.size("image_size", 1 << 14);
  const std::int64_t patch = config.size("patch_size", 1 << 10);
  const std::int64_t channels = config.positive_or("num_channels", 1 << 10, 3);
  if (image % patch != 0) config.fail("image_size", "is not a multiple of patch_size");
  const std::int64_t tokens = config.type() == "ijepa" ? 0 : config.type() == "deit" ? 2 : 1;
  model.embedding.max_positions = (image / patch) * (image / patch) + tokens;

  // The layers, positions and final norm are those of a decoder without a vocabulary.
  model.further.matrix(channels * patch * patch * model.hidden);
  model.further.vector((1 + tokens) * model.hidden);  // bias of the projection, tokens
  model.formula = "cpph + h + th + Ph + L(4hh + 2hf + q+2k+h + f+h + 4h) + 2h";
  model.not_simulated = "vision transformers are counted, not yet simulated";
  const bool pools = config.type() == "vit" || config.type() == "deit";
  add_image_head(config, model, {.columns = model.hidden, .pools = pools});
  for (const char* key : {"encoder_stride", "pooler_act", "pooler_output_size"}) config.find(key);
  return built(model);
}

}  // namespace orrery::models
