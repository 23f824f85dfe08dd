// Readers of models with both sides whose attention differs from BART's: LED, ProphetNet. Counted,
// not simulated.
#include "models/model/import/encoders/translator_kind.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

/// Attention with biases of all four matrices, and a layer norm.
CountedPart attention_twice(std::int64_t h, std::int64_t others) {
  CountedPart part{"attention and cross-attention"};
  part.count.matrix(8 * h * h);
  part.count.vector(8 * h + 2 * h + others);
  return part;
}

/// Post-norm layers of width h, norms after both embeddings, one table.
ModelDraft both_sides(Config& config, std::int64_t h) {
  ModelDraft model;
  model.family = Family::other;
  model.hidden = h;
  model.embedding.positions = Positions::none;
  model.embedding.vocab = config.size("vocab_size", Limits::vocab);
  model.embedding.tied = true;
  model.norms.embedding = model.norms.after_residual = true;
  model.norms.final = false;
  model.mlp.activation = config.activation("activation_function", Activation::gelu_erf);
  if (!config.flag("tie_word_embeddings", true)) {
    config.fail("tie_word_embeddings", "is not supported for this type; expected true");
  }
  for (const char* key : {"classifier_dropout", "decoder_layerdrop", "decoder_start_token_id",
                          "encoder_layerdrop", "is_decoder", "num_hidden_layers"}) {
    config.find(key);
  }
  model.not_simulated = "cross-attention is counted, not yet simulated";
  return model;
}

void add_layers(ModelDraft& model, std::int64_t layers, std::int64_t width,
                const CountedPart& mixer) {
  MlpPart mlp = model.mlp;
  mlp.width = width;
  for (std::int64_t i = 0; i < layers; ++i) model.layers.push_back({mixer, mlp});
}

void only_both_sides(Config& config, const std::string& name) {
  if (name.empty() || name.ends_with("ForConditionalGeneration") || name.ends_with("Model")) return;
  config.fail("architectures", "the head of class '" + name +
                                   "' is not known; expected one of both sides, such as "
                                   "...ForConditionalGeneration");
}

}  // namespace

/// BART whose encoder attends to a window and, through matrices of its own, from and to global
/// tokens.
/// Source  Beltagy et al. 2020, arXiv 2004.05150; LEDForConditionalGeneration of the transformers
///         library
Model read_led(Config& config) {
  const std::int64_t h = config.size("d_model", Limits::hidden);
  ModelDraft model = both_sides(config, h);
  only_both_sides(config, first_class(config));
  for (const char* key : {"encoder_attention_heads", "decoder_attention_heads"}) {
    if (h % config.size(key, Limits::heads) != 0) config.fail(key, "does not divide d_model");
  }
  CountedPart global{"attention to a window and to global tokens"};
  global.count.matrix(7 * h * h);
  global.count.vector(7 * h);
  add_layers(model, config.size("encoder_layers", Limits::layers),
             config.size("encoder_ffn_dim", Limits::ffn_hidden), global);
  add_layers(model, config.size("decoder_layers", Limits::layers),
             config.size("decoder_ffn_dim", Limits::ffn_hidden), attention_twice(h, 0));
  model.further.vector((config.size("max_encoder_position_embeddings", Limits::positions) +
                        config.size("max_decoder_position_embeddings", Limits::positions) + 2) *
                       h);
  config.find("attention_window");
  model.formula = "Vh + Ph + encoder L(7hh + 2hf + biases + 4h) + decoder layers + 4h";
  return built(std::move(model));
}

/// A decoder that predicts the next n tokens at once, with relative positions of each head.
/// Source  Qi et al. 2020, arXiv 2001.04063; ProphetNetForConditionalGeneration and
///         ProphetNetForCausalLM of the transformers library
Model read_prophetnet(Config& config) {
  const std::int64_t h = config.size("hidden_size", Limits::hidden);
  ModelDraft model = both_sides(config, h);
  const std::string name = first_class(config);
  const bool alone = name.ends_with("ForCausalLM") || name.ends_with("Decoder");
  if (!alone) only_both_sides(config, name);
  if (!config.flag("add_cross_attention", true)) {
    config.fail("add_cross_attention", "is not supported for this type; expected true");
  }
  const std::int64_t positions = config.size("max_position_embeddings", Limits::positions);
  const std::int64_t places = config.size("num_buckets", 1 << 16) *
                              config.size("num_decoder_attention_heads", Limits::heads);
  config.find("num_encoder_attention_heads");
  if (!alone) {
    CountedPart plain{"attention"};
    plain.count.matrix(4 * h * h);
    plain.count.vector(4 * h);
    add_layers(model, config.size("num_encoder_layers", Limits::layers),
               config.size("encoder_ffn_dim", Limits::ffn_hidden), plain);
    model.further.vector(positions * h + 2 * h);
  }
  add_layers(model, config.size("num_decoder_layers", Limits::layers),
             config.size("decoder_ffn_dim", Limits::ffn_hidden),
             attention_twice(h, places * h + places));
  model.further.vector(positions * h + config.size("ngram", 1 << 10) * h);
  for (const char* key : {"disable_ngram_loss", "encoder_ffn_dim", "encoder_layers",
                          "decoder_layers", "eps", "num_encoder_layers", "relative_max_distance"}) {
    config.find(key);
  }
  model.formula =
      "Vh + Ph + nh + encoder layers + decoder L(8hh + buckets*heads*h + 2hf + biases) + norms";
  return built(std::move(model));
}

}  // namespace orrery::models
