// Readers of models whose decoder attends to an encoder's output: T5 and BART with their relatives,
// Whisper. The encoder's layers come before the decoder's (EncoderPart); a plan's seq_len is the
// decoder's, and the source's length is `source_len`, a key of ours. Leaves out a kernel for T5's
// relative positions, which are added to scores, and for fixed positions without a table.
//
// A decoder's layer of width h, heads of a columns together:
//   attention to itself 4 h a;  to the encoder's output 4 h a, of which keys and values (2 h a) are
//   of the encoder's tokens;  MLP 2 h f, or 3 h f with a gate
// Source  Raffel et al. 2019, arXiv 1910.10683; Radford et al. 2022, arXiv 2212.04356; T5-, UMT5-,
//         BART- and WhisperForConditionalGeneration of the transformers library

#include <fmt/format.h>

#include <cmath>

#include "models/model/import/encoders/translator_kind.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

/// Heads and layers of both sides, by the keys of BART.
ModelDraft read_sides(Config& config) {
  ModelDraft model;
  model.family = Family::other;
  const std::int64_t h = model.hidden = config.size("d_model", Limits::hidden);
  AttentionPart& attention = model.attention;
  attention.heads = attention.kv_heads = config.size("encoder_attention_heads", Limits::heads);
  if (config.size("decoder_attention_heads", Limits::heads) != attention.heads) {
    config.fail("decoder_attention_heads", "differs from encoder_attention_heads");
  }
  if (h % attention.heads != 0) {
    config.fail("d_model",
                fmt::format("{} is not a multiple of the {} attention heads", h, attention.heads));
  }
  attention.head_dim = h / attention.heads;
  model.encoder = EncoderPart{.layers = config.size("encoder_layers", Limits::layers)};
  model.depth = config.size("decoder_layers", Limits::layers);
  model.encoder_width = config.size("encoder_ffn_dim", Limits::ffn_hidden);
  model.mlp.width = config.size("decoder_ffn_dim", Limits::ffn_hidden);
  model.mlp.activation = config.activation("activation_function", Activation::gelu_erf);
  // Embeddings are multiplied by the root of the width, on both sides.
  if (config.flag("scale_embedding", false)) {
    model.embedding.multiplier = std::sqrt(static_cast<double>(h));
  }
  return model;
}

}  // namespace

void read_source_len(Config& config, ModelDraft& model, std::int64_t most, std::int64_t usual) {
  EncoderPart& encoder = *model.encoder;
  encoder.seq_len = config.positive_or("source_len", most, usual);
  encoder.length_assumed = !config.find("source_len");
  if (!encoder.length_assumed) return;
  model.assumptions.push_back(fmt::format(
      "/source_len: {} assumed, the tokens of a sequence that the encoder reads", usual));
}

/// Norms without biases, one table for both sides, relative positions in buckets: a number for each
/// bucket and head, in the first layer of each side or (UMT5) in all; older models without a gate.
/// LongT5's encoder attends within a radius, and to sums of blocks.
/// Source  Guo et al. 2021, arXiv 2112.07916
Model read_t5(Config& config) {
  if (const std::string name = first_class(config); name.ends_with("EncoderModel")) {
    config.fail("architectures", "an encoder alone (" + name +
                                     ") is not supported; expected a class with both sides");
  }
  ModelDraft model;
  model.family = Family::other;
  model.hidden = config.size("d_model", Limits::hidden);
  AttentionPart& attention = model.attention;
  attention.heads = attention.kv_heads = config.size("num_heads", Limits::heads);
  attention.head_dim = config.size("d_kv", Limits::head_dim);
  attention.qkv_bias = attention.output_bias = model.mlp.bias = model.norms.bias = false;
  model.norms.kind = Norm::rms_norm;
  model.embedding.positions = Positions::none;
  // Scores are not divided by the root of a head's width.
  model.embedding.rotary.score_factor = std::sqrt(static_cast<double>(attention.head_dim));
  const auto feed = config.find("feed_forward_proj");
  model.mlp.gated = feed && feed->as<std::string>().starts_with("gated-");
  model.mlp.activation = config.activation("dense_act_fn", Activation::relu);
  model.mlp.width = config.size("d_ff", Limits::ffn_hidden);
  model.encoder = EncoderPart{.layers = config.size("num_layers", Limits::layers)};
  model.depth = config.positive_or("num_decoder_layers", Limits::layers, model.encoder->layers);
  model.embedding.vocab = config.size("vocab_size", Limits::vocab);
  const bool local = config.type() == "longt5";
  // The classes of release 5.24 tie in any case; the key says whether outputs are scaled.
  if (!config.flag("tie_word_embeddings", true) && !local) {
    model.assumptions.emplace_back(
        "/tie_word_embeddings: a tied head assumed, as the class of release 5.24 has it; false "
        "says "
        "that outputs are not scaled");
  }
  const std::int64_t buckets = config.positive_or("relative_attention_num_buckets", 1 << 16, 32);
  const bool each = config.type() == "umt5";
  for (const char* key :
       {"classifier_dropout", "decoder_start_token_id", "initializer_factor", "is_decoder",
        "is_gated_act", "relative_attention_max_distance", "scale_decoder_outputs"}) {
    config.find(key);
  }
  constexpr std::int64_t trained = 512;  // arXiv 1910.10683, section 3.1.2
  const std::int64_t usual = config.positive_or("n_positions", Limits::positions, trained);
  model.embedding.max_positions = usual;
  read_source_len(config, model, Limits::positions, usual);
  std::int64_t places =
      (each ? model.encoder->layers + model.depth : 2) * buckets * attention.heads;
  const auto kind = local ? config.find("encoder_attention_type") : std::nullopt;
  if (kind && kind->one_of({"local", "transient-global"}) == 1) {
    // Of global tokens, and norms.
    places += buckets * attention.heads + model.encoder->layers * model.hidden;
  }
  if (local) {
    config.find("local_radius");
    config.find("global_block_size");
    model.not_simulated = "local attention of an encoder is counted, not yet simulated";
  }
  model.further.vector(places);
  also_inexact(model, "relative positions added to scores");
  return built(std::move(model));
}

/// A table for both sides, or one for each; positions of either side, a norm after the embedding or
/// after the last layer, biases.
Model read_translation(Config& config, const TranslatorKind& kind) {
  ModelDraft model = read_sides(config);
  model.attention.qkv_bias = model.attention.output_bias = kind.attention_biases;
  const std::int64_t words = config.size("vocab_size", Limits::vocab);
  const std::int64_t target = config.positive_or("decoder_vocab_size", Limits::vocab, words);
  const bool shared = config.flag("share_encoder_decoder_embeddings", true);
  model.embedding.vocab = shared ? words : target;
  if (!shared) model.encoder->vocab = words;
  if (!config.flag("tie_word_embeddings", true)) {
    config.fail("tie_word_embeddings", "is not supported for this type; expected true");
  }
  model.norms.embedding = kind.embedding_norm;
  model.norms.final = kind.final_norm;
  model.norms.after_residual = !kind.final_norm;
  for (const char* key : {"add_bias_logits",
                          "add_final_layer_norm",
                          "attention_type",
                          "block_size",
                          "classifier_dropout",
                          "decoder_layerdrop",
                          "decoder_start_token_id",
                          "encoder_layerdrop",
                          "encoder_no_repeat_ngram_size",
                          "extra_pos_embeddings",
                          "force_bos_token_to_be_generated",
                          "forced_bos_token_id",
                          "forced_eos_token_id",
                          "is_decoder",
                          "max_length",
                          "normalize_before",
                          "normalize_embedding",
                          "num_hidden_layers",
                          "num_random_blocks",
                          "static_position_embeddings",
                          "use_bias"}) {
    config.find(key);
  }
  const std::int64_t longest = config.size("max_position_embeddings", Limits::positions);
  model.embedding.max_positions = longest;
  model.embedding.positions = kind.positions ? Positions::learned : Positions::none;
  if (kind.positions) {
    model.embedding.extra_position_rows = kind.extra;
    model.encoder->position_rows = longest + kind.extra;
  }
  if (!kind.learns_positions) also_inexact(model, "positions that are fixed");
  read_source_len(config, model, longest, longest);
  if (config.type() == "bigbird_pegasus") {
    model.not_simulated = "block-sparse attention is counted, not yet simulated";
  }
  return built(std::move(model));
}

/// Two convolutions of which the second halves the sound's steps, fixed positions of the encoder
/// and learned ones of the decoder, layer norms, biases of all but keys.
Model read_whisper(Config& config) {
  const std::string named = first_class(config);
  if (named.ends_with("ForCausalLM")) return read_speech_decoder(config);
  if (named.ends_with("Classification")) {
    config.fail("architectures", "the head of class '" + named +
                                     "' is not supported; expected WhisperForConditionalGeneration "
                                     "or WhisperForCausalLM");
  }
  ModelDraft model = read_sides(config);
  EncoderPart& encoder = *model.encoder;
  model.embedding.vocab = config.size("vocab_size", Limits::vocab);
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  model.embedding.max_positions = config.size("max_target_positions", Limits::positions);
  encoder.frame_columns = config.size("num_mel_bins", Limits::hidden);
  encoder.position_rows = encoder.seq_len = config.size("max_source_positions", Limits::positions);
  for (const char* key :
       {"apply_spec_augment", "begin_suppress_tokens", "classifier_proj_size", "decoder_layerdrop",
        "decoder_start_token_id", "encoder_layerdrop", "mask_feature_length",
        "mask_feature_min_masks", "mask_feature_prob", "mask_time_length", "mask_time_min_masks",
        "mask_time_prob", "median_filter_width", "num_hidden_layers", "suppress_tokens",
        "use_weighted_layer_sum"}) {
    config.find(key);
  }
  // Keys have no bias: one attention of an encoder's layer, two of a decoder's.
  model.further.vector(-(encoder.layers + 2 * model.depth) * model.attention.key_columns());
  also_inexact(model, "keys without a bias");
  model.assumptions.emplace_back("spectrograms are computed before the step");
  return built(std::move(model));
}

}  // namespace orrery::models
