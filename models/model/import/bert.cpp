// Readers of encoders: BERT with its pre-training heads, and the vision transformer without its
// classifier.
#include <algorithm>

#include "models/model/import/families.hpp"

namespace orrery::models {

bool fills_in_alone(Config& config) {
  const auto named = config.find("architectures");
  if (!named) return false;
  const std::vector<Node> names = named->elements();
  return std::ranges::any_of(
      names, [](const Node& each) { return each.as<std::string>() == "BertForMaskedLM"; });
}

/// Norms after attention, MLP and embedding, no final norm. Counted with the pre-training heads:
/// transform, vocabulary bias, pooler and next-sentence classifier; the last two not for
/// BertForMaskedLM.
/// Source  Devlin et al. 2018, arXiv 1810.04805; BertForPreTraining and BertForMaskedLM of the
///         transformers library
Model read_bert(Config& config) {
  ModelDraft model;
  model.family = Family::bert;
  model.causal = false;
  read_shape(config, model);
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.mlp.activation = config.activation("hidden_act", Activation::gelu_erf);
  model.embedding.token_types = config.positive_or("type_vocab_size", Limits::token_types, 2);
  model.norms.final = false;
  model.norms.embedding = true;
  model.head.transform = true;
  model.head.bias = true;
  model.head.pooler = !fills_in_alone(config);
  model.norms.after_residual = true;
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  return built(model);
}

/// Encoder without a classifier: projected patches, one class token, learned positions.
///   c p p h + h  +  h  +  (n + 1) h  +  L (4 h h + 2 h f + biases + norms)  +  2 h
/// c channels, p patch, n = (image / patch)^2
/// Source  Dosovitskiy et al. 2020, arXiv 2010.11929
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
  model.embedding.max_positions = (image / patch) * (image / patch) + 1;

  // The layers, positions and final norm are those of a decoder without a vocabulary.
  model.further.matrix(channels * patch * patch * model.hidden);
  model.further.vector(2 * model.hidden);  // bias of the projection, class token
  model.formula = "cpph + 2h + Ph + L(4hh + 2hf + q+2k+h + f+h + 4h) + 2h";
  model.not_simulated = "vision transformers are counted, not yet simulated";
  return built(model);
}

}  // namespace orrery::models
