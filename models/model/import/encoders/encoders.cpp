// Readers of encoders of images and texts, and of models with cross-attention between an encoder
// and a decoder: CLIP, SigLIP, DINO, BART, NLLB, Switch transformers. Counted, not simulated.
#include <algorithm>
#include <array>
#include <cmath>

#include "hardware/reading.hpp"
#include "models/model/counts.hpp"
#include "models/model/import/encoders/translator_kind.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

constexpr std::int64_t largest_image = 1 << 14, largest_patch = 1 << 10, most_channels = 1 << 10;

constexpr const char* no_cross_attention = "cross-attention is counted, not yet simulated";

/// Layers of an encoder with layer norms and biases; no table, no head.
ModelDraft read_encoder(Config& config) {
  ModelDraft model;
  model.family = Family::other;
  model.causal = false;
  model.embedding.positions = Positions::none;
  model.depth = config.size("num_hidden_layers", Limits::layers);
  model.hidden = config.size("hidden_size", Limits::hidden);
  model.attention.heads = config.size("num_attention_heads", Limits::heads);
  model.mlp.activation = config.activation("hidden_act", Activation::gelu_erf);
  fill_heads(config, model);
  return model;
}

/// The projection of patches, with its bias; returns how many there are.
std::int64_t read_patches(Config& config, ModelDraft& model) {
  const std::int64_t patch = config.size("patch_size", largest_patch);
  const std::int64_t channels = config.positive_or("num_channels", most_channels, 3);
  const std::int64_t side = config.size("image_size", largest_image) / patch;
  if (side == 0) config.fail("image_size", "is smaller than patch_size");
  model.further.matrix(channels * patch * patch * model.hidden);
  model.further.vector(model.hidden);
  model.embedding.max_positions = side * side;
  return side * side;
}

}  // namespace

namespace {

ModelDraft read_contrastive_text(Config& config) {
  ModelDraft model = read_encoder(config);
  model.causal = true;
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.embedding.vocab = config.size("vocab_size", Limits::vocab);
  model.embedding.max_positions = config.size("max_position_embeddings", Limits::positions);
  model.embedding.positions = Positions::learned;
  for (const char* key : {"projection_dim", "projection_size", "logit_scale_init_value",
                          "text_config_dict", "vision_config_dict"}) {
    config.find(key);
  }
  model.formula = "Vh + Ph + L(4hh + 2hf + biases + 4h) + 2h, text encoder only";
  model.not_simulated = "contrastive text encoders are counted, not yet simulated";
  return model;
}

}  // namespace

/// The text encoder, with its projection where the file names that class. A file of both encoders
/// is counted with both (whole_model.cpp) and read as that of text.
/// Source  Radford et al. 2021, arXiv 2103.00020; CLIPTextModel and CLIPTextModelWithProjection of
///         the transformers library
Model read_clip(Config& config) {
  ModelDraft model = read_contrastive_text(config);
  if (first_class(config).ends_with("TextModelWithProjection")) {
    model.further.matrix(model.hidden * config.size("projection_dim", Limits::hidden));
    model.formula += ", with its projection";
  }
  return built(model);
}

/// CLIP's text encoder with a projection that has a bias.
/// Source  Zhai et al. 2023, arXiv 2303.15343; SiglipTextModel and Siglip2TextModel of the
///         transformers library
Model read_siglip_text(Config& config) {
  ModelDraft model = read_contrastive_text(config);
  model.causal = false;
  const std::int64_t columns = config.positive_or("projection_size", Limits::hidden, model.hidden);
  model.further.matrix(model.hidden * columns);
  model.further.vector(columns);
  model.formula = "Vh + Ph + L(4hh + 2hf + biases + 4h) + 2h + hh + h, text encoder only";
  return built(model);
}

/// A head of attention from one learned probe, a norm and an MLP:
///   h  +  4 h h + 4 h  +  2 h  +  2 h f + f + h
/// Source  Zhai et al. 2023, arXiv 2303.15343; SiglipVisionModel of the transformers library
Model read_siglip_vision(Config& config) {
  ModelDraft model = read_encoder(config);
  const std::int64_t h = model.hidden;
  const std::int64_t f = model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.further.vector(read_patches(config, model) * h);
  if (config.flag("vision_use_head", true)) {
    model.further.matrix(4 * h * h + 2 * h * f);
    model.further.vector(8 * h + f);
  }
  model.formula = "cpph + h + Ph + L(4hh + 2hf + biases + 4h) + 2h + attention head";
  model.not_simulated = "vision transformers are counted, not yet simulated";
  return built(model);
}

/// Class and mask token, registers, learned positions, a scale for each column of each part, and a
/// classifier of class token and mean where the file names that class, or none.
/// Source  Oquab et al. 2023, arXiv 2304.07193; Dinov2ForImageClassification of the transformers
///         library
Model read_dinov2(Config& config) {
  ModelDraft model = read_encoder(config);
  const std::int64_t h = model.hidden;
  const auto ratio = config.find("mlp_ratio");
  const double widths = ratio ? hardware::within(*ratio, 1e-3, 64) : 4;
  auto f = static_cast<std::int64_t>(static_cast<double>(h) * widths);
  model.mlp.gated = config.flag("use_swiglu_ffn", false);
  constexpr std::int64_t multiple = 8;
  if (model.mlp.gated) f = (2 * f / 3 + multiple - 1) / multiple * multiple;
  if (f < 1 || f > Limits::ffn_hidden) config.fail("mlp_ratio", "makes an MLP out of range");
  model.mlp.width = f;
  model.attention.qkv_bias = config.flag("qkv_bias", true);
  model.further.vector((read_patches(config, model) + 1) * h + h + model.depth * 2 * h);
  const bool registers = config.type() == "dinov2_with_registers";
  if (registers || config.flag("use_mask_token", true)) model.further.vector(h);
  if (registers) model.further.vector(config.size("num_register_tokens", 1 << 16) * h);
  model.formula = "cpph + h + (P+1)h + 2h + L(4hh + 2hf + biases + 6h) + 2h";
  model.not_simulated = "vision transformers are counted, not yet simulated";
  if (first_class(config).empty()) config.assume({{"architectures", {"ForImageClassification"}}});
  add_image_head(config, model, {.columns = 2 * h});
  return built(model);
}

/// Rotary positions, register tokens, biases each with a key of its own, no classifier.
/// Source  Simeoni et al. 2025, arXiv 2508.10104; DINOv3ViTModel of the transformers library
Model read_dinov3_vit(Config& config) {
  ModelDraft model = read_encoder(config);
  const std::int64_t h = model.hidden;
  model.mlp.width = config.size("intermediate_size", Limits::ffn_hidden);
  model.mlp.gated = config.flag("use_gated_mlp", false);
  model.mlp.bias = config.flag("mlp_bias", true);
  model.attention.qkv_bias = false;
  model.attention.output_bias = config.flag("proj_bias", true);
  for (const char* key : {"query_bias", "key_bias", "value_bias"}) {
    if (config.flag(key, std::string_view{key} != "key_bias")) {
      model.further.vector(model.depth * h);
    }
  }
  read_patches(config, model);
  const std::int64_t registers = config.size_or("num_register_tokens", 1 << 16, 0);
  model.further.vector((2 + registers) * h + model.depth * 2 * h);
  model.formula = "cpph + h + (2+R)h + L(4hh + 2hf + biases + 6h) + 2h";
  model.not_simulated = "vision transformers are counted, not yet simulated";
  return built(model);
}

namespace {

/// Attention of a decoder's layer over itself and over the encoder, with a norm between them.
CountedPart crossed(const AttentionPart& attention, std::int64_t hidden, std::int64_t norm) {
  CountedPart part{"attention and cross-attention"};
  part.count.add(models::tally_of(Layer{attention, NoPart{}}, hidden), 2);
  part.count.vector(norm);
  return part;
}

/// A layer of an encoder, or of a decoder that attends to it.
Layer side_layer(AttentionPart attention, const MlpPart& mlp, bool decodes) {
  attention.encodes = !decodes;
  Layer layer{attention, mlp};
  if (decodes) layer.cross = cross_of(attention);
  return layer;
}

/// Without tied embeddings encoder and decoder have a table each besides the shared one.
void unshare_tables(ModelDraft& model) {
  if (!model.embedding.tied) model.further.vector(2 * model.embedding.vocab * model.hidden);
}

/// Layer norms, biases, no positions that are learned: BART's and NLLB's layers.
ModelDraft read_translator(Config& config) {
  ModelDraft model;
  model.family = Family::other;
  model.embedding.positions = Positions::none;
  model.hidden = config.size("d_model", Limits::hidden);
  model.attention.heads = config.size("decoder_attention_heads", Limits::heads);
  model.embedding.vocab = config.size("vocab_size", Limits::vocab);
  model.embedding.max_positions = config.size("max_position_embeddings", Limits::positions);
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  model.mlp.activation = config.activation("activation_function", Activation::gelu_erf);
  model.not_simulated = no_cross_attention;
  if (config.flag("scale_embedding", false)) {
    model.embedding.multiplier = std::sqrt(static_cast<double>(model.hidden));
  }
  for (const char* key :
       {"encoder_layers", "encoder_ffn_dim", "encoder_attention_heads", "encoder_layerdrop",
        "decoder_layerdrop", "decoder_start_token_id", "forced_eos_token_id", "forced_bos_token_id",
        "classifier_dropout", "is_decoder", "num_hidden_layers"}) {
    config.find(key);
  }
  fill_heads(config, model);
  return model;
}

}  // namespace

namespace {

/// The decoder alone, as the class for causal language models has it, with its cross-attention to
/// an encoder's output of `source` columns.
Model read_decoder_alone(Config& config, const TranslatorKind& kind, std::int64_t source) {
  ModelDraft model = read_translator(config);
  const std::int64_t h = model.hidden;
  model.depth = config.size("decoder_layers", Limits::layers);
  model.mlp.width = config.size("decoder_ffn_dim", Limits::ffn_hidden);
  model.embedding.positions = kind.positions ? Positions::learned : Positions::none;
  model.embedding.extra_position_rows = kind.extra;
  model.norms.embedding = kind.embedding_norm;
  model.norms.after_residual = !kind.final_norm;
  model.norms.final = kind.final_norm;
  model.embedding.tied = model.embedding.tied && kind.tied_alone;
  model.attention.qkv_bias = model.attention.output_bias = kind.attention_biases;
  CountedPart mixer = crossed(model.attention, h, 2 * h);
  mixer.count.matrix(2 * (source - h) * model.attention.query_columns());
  if (kind.attention_biases && !kind.key_biases) {
    mixer.count.vector(-2 * model.attention.query_columns());
  }
  for (std::int64_t i = 0; i < model.depth; ++i) model.layers.push_back({mixer, model.mlp});
  model.formula = "Vh + positions + L(2(4hh + biases) + 2hf + f + h + 6h) + norms, decoder only";
  return built(model);
}

}  // namespace

/// BART and its relatives: both sides, or the decoder alone where the file names its class.
/// Source  Lewis et al. 2019, arXiv 1910.13461; BartForConditionalGeneration and BartForCausalLM of
///         the transformers library, and the classes of these types there
Model read_bart(Config& config) {
  TranslatorKind kind = translator_kind(config.type());
  if (!kind.attention_biases) kind.attention_biases = config.flag("use_bias", false);
  const std::string name = first_class(config);
  if (config.flag("use_prompt", false)) {
    config.fail("use_prompt", "prompts are not supported for this type; expected false");
  }
  if (config.find("prompt_length") && config.find("prompt_mid_dim")) config.find("use_prompt");
  if (name.ends_with("ForCausalLM") || name.ends_with("Decoder")) {
    config.find("share_encoder_decoder_embeddings");
    const std::int64_t words = config.size("vocab_size", Limits::vocab);
    const std::int64_t target = config.positive_or("decoder_vocab_size", Limits::vocab, words);
    if (target != words) {
      config.fail("decoder_vocab_size", "differs from vocab_size; expected one vocabulary");
    }
    return read_decoder_alone(config, kind, config.size("d_model", Limits::hidden));
  }
  constexpr std::array whole{"ForConditionalGeneration", "MTModel", "Model"};
  const bool known = std::ranges::any_of(whole, [&](auto each) { return name.ends_with(each); });
  if (!name.empty() && !known) {
    config.fail("architectures",
                "the head of class '" + name +
                    "' is not known; expected a name that ends on one of ForConditionalGeneration, "
                    "ForCausalLM, MTModel, Model");
  }
  return read_translation(config, kind);
}

namespace {

/// One side of T5Gemma: Gemma 2's layers.
ModelDraft read_gemma_side(Config& config, const char* side) {
  const auto node = config.find(side);
  if (!node || !node->is_object()) config.fail(side, std::string{side} + " is missing");
  Config own{*node};
  const auto usual = Document::parse(type_defaults("t5gemma"), "defaults");
  own.assume(usual.json());
  ModelDraft model = llama_with_biases(own);
  model.family = Family::other;
  model.mlp.activation = own.activation("hidden_activation", Activation::gelu);
  model.mlp.bias = false;
  model.norms.sandwich = true;
  model.embedding.tied = true;
  return model;
}

}  // namespace

/// Encoder and decoder of Gemma 2's layers, each with a table, cross-attention with as many heads.
/// Source  Zhang et al. 2025, arXiv 2504.06225; T5GemmaForConditionalGeneration of the transformers
///         library
Model read_t5gemma(Config& config) {
  ModelDraft encoder = read_gemma_side(config, "encoder");
  ModelDraft model = read_gemma_side(config, "decoder");
  const std::string name = first_class(config);
  if (!name.empty() && !name.ends_with("ForConditionalGeneration") &&
      !name.ends_with("T5GemmaModel")) {
    config.fail("architectures",
                "class '" + name + "' is not supported; expected T5GemmaForConditionalGeneration");
  }
  model.embedding.tied = config.flag("tie_word_embeddings", true) || name.ends_with("T5GemmaModel");
  const std::int64_t h = model.hidden;
  CountedPart mixer = crossed(model.attention, h, 2 * h);
  mixer.count.matrix(2 * (encoder.hidden - h) * model.attention.key_columns());
  for (std::int64_t i = 0; i < model.depth; ++i) model.layers.push_back({mixer, model.mlp});
  const Model source = built(std::move(encoder));
  model.further.add({source.parameters, source.active_parameters,
                     count_gemm_parameters(source) - source.embedding.vocab * source.hidden});
  for (const char* key : {"classifier_dropout_rate", "vocab_size"}) config.find(key);
  model.formula = "encoder (Vh + layers + h) + decoder (Vh + layers with cross-attention + h)";
  model.not_simulated = no_cross_attention;
  return built(std::move(model));
}

/// A decoder of text behind an encoder of images, which is in a file of its own.
/// Source  Li et al. 2021, arXiv 2109.10282; TrOCRForCausalLM of the transformers library
Model read_trocr(Config& config) {
  TranslatorKind kind = translator_kind("trocr");
  kind.positions = config.flag("use_learned_position_embeddings", true);
  kind.embedding_norm = config.flag("layernorm_embedding", true);
  const std::int64_t h = config.size("d_model", Limits::hidden);
  return read_decoder_alone(config, kind,
                            config.positive_or("cross_attention_hidden_size", Limits::hidden, h));
}

Model read_speech_decoder(Config& config) {
  config.assume(
      {{"max_position_embeddings", config.size("max_target_positions", Limits::positions)}});
  constexpr TranslatorKind kind{
      .type = "whisper", .embedding_norm = false, .final_norm = true, .key_biases = false};
  for (const char* key :
       {"apply_spec_augment", "begin_suppress_tokens", "classifier_proj_size",
        "mask_feature_length", "mask_feature_min_masks", "mask_feature_prob", "mask_time_length",
        "mask_time_min_masks", "mask_time_prob", "max_source_positions", "median_filter_width",
        "num_mel_bins", "suppress_tokens", "use_weighted_layer_sum"}) {
    config.find(key);
  }
  return read_decoder_alone(config, kind, config.size("d_model", Limits::hidden));
}

/// Encoder and decoder; every n-th layer has experts.
/// Source  NLLB team 2022, arXiv 2207.04672; NllbMoeForConditionalGeneration of the transformers
///         library
Model read_nllb_moe(Config& config) {
  ModelDraft model = read_translator(config);
  if (config.size("encoder_attention_heads", Limits::heads) != model.attention.heads) {
    config.fail("decoder_attention_heads", "differs from encoder_attention_heads");
  }
  model.experts.count = config.size("num_experts", Limits::experts);
  model.experts.per_token = std::min<std::int64_t>(2, model.experts.count);
  const bool router_bias = config.flag("router_bias", false);
  const auto add = [&](const char* depth, const char* width, const char* step, bool decodes) {
    MlpPart mlp = model.mlp;
    mlp.width = config.size(width, Limits::ffn_hidden);
    const std::int64_t every = config.size_or(step, Limits::layers, 4);
    const std::int64_t layers = config.size(depth, Limits::layers);
    for (std::int64_t i = 1; i <= layers; ++i) {
      Layer layer = side_layer(model.attention, mlp, decodes);
      if (every > 0 && i % every == 0) {
        ExpertsPart experts = model.experts;
        experts.mlp = mlp;
        experts.router_bias = router_bias;
        layer.channel = experts;
      }
      model.layers.push_back(layer);
    }
  };
  add("encoder_layers", "encoder_ffn_dim", "encoder_sparse_step", false);
  model.encoder = EncoderPart{.layers = model.layers.size()};
  add("decoder_layers", "decoder_ffn_dim", "decoder_sparse_step", true);
  read_source_len(config, model, model.embedding.max_positions, model.embedding.max_positions);
  unshare_tables(model);
  model.not_simulated.reset();
  also_inexact(model, "positions that are fixed");
  for (const char* key :
       {"batch_prioritized_routing", "expert_capacity", "moe_eval_capacity_token_fraction",
        "moe_token_dropout", "normalize_router_prob_before_dropping", "router_dtype",
        "router_ignore_padding_tokens", "router_z_loss_coef", "second_expert_policy"}) {
    config.find(key);
  }
  model.formula = "Vh + encoder + decoder layers + 4h";
  return built(model);
}

namespace {

/// Layers of Switch transformers that have experts: the second of every n.
bool switches(std::int64_t layer, std::int64_t layers, std::int64_t sparse) {
  const std::int64_t step = sparse > 0 ? layers / sparse : layers;
  return step > 0 && (step == 1 || layer % step == 1);
}

}  // namespace

/// T5 (encoder_decoder.cpp) with experts in some layers of either side.
/// Source  Fedus et al. 2021, arXiv 2101.03961; SwitchTransformersForConditionalGeneration of the
///         transformers library
Model read_switch_transformers(Config& config) {
  ModelDraft model;
  model.family = Family::other;
  model.norms.kind = Norm::rms_norm;
  model.embedding.positions = Positions::none;
  model.hidden = config.size("d_model", Limits::hidden);
  model.attention.heads = config.size("num_heads", Limits::heads);
  model.attention.head_dim = config.size("d_kv", Limits::head_dim);
  // Scores are not divided by the root of a head's width.
  model.embedding.rotary.score_factor = std::sqrt(static_cast<double>(model.attention.head_dim));
  fill_heads(config, model);
  model.embedding.vocab = config.size("vocab_size", Limits::vocab);
  model.embedding.tied = config.flag("tie_word_embeddings", true);
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias = false;
  model.mlp.width = config.size("d_ff", Limits::ffn_hidden);
  const auto feed = config.find("feed_forward_proj");
  model.mlp.gated = feed && feed->as<std::string>().starts_with("gated-");
  model.mlp.activation = config.activation("dense_act_fn", Activation::relu);
  model.experts.count = config.size("num_experts", Limits::experts);
  model.experts.per_token = 1;
  model.experts.router_bias = config.flag("router_bias", false);
  model.experts.mlp = model.mlp;
  const std::int64_t encoder = config.size("num_layers", Limits::layers);
  const std::int64_t decoder = config.positive_or("num_decoder_layers", Limits::layers, encoder);
  const auto add = [&](std::int64_t layers, const char* sparse, bool decodes) {
    const std::int64_t switched = config.size_or(sparse, Limits::layers, 3);
    for (std::int64_t i = 0; i < layers; ++i) {
      Layer layer = side_layer(model.attention, model.mlp, decodes);
      if (switches(i, layers, switched)) layer.channel = model.experts;
      model.layers.push_back(layer);
    }
  };
  add(encoder, "num_sparse_encoder_layers", false);
  model.encoder = EncoderPart{.layers = encoder};
  add(decoder, "num_sparse_decoder_layers", true);
  const std::int64_t buckets = config.positive_or("relative_attention_num_buckets", 1 << 16, 32);
  model.further.vector(2 * buckets * model.attention.heads);  // in the first layer of each side
  constexpr std::int64_t trained = 512;                       // arXiv 2101.03961, appendix
  model.embedding.max_positions = config.positive_or("n_positions", Limits::positions, trained);
  read_source_len(config, model, Limits::positions, model.embedding.max_positions);
  unshare_tables(model);
  for (const char* key :
       {"add_router_probs", "classifier_dropout", "decoder_sparse_step", "decoder_start_token_id",
        "encoder_sparse_step", "expert_capacity", "initializer_factor", "is_decoder",
        "is_gated_act", "relative_attention_max_distance", "router_dtype",
        "router_ignore_padding_tokens", "router_z_loss_coef", "scale_decoder_outputs"}) {
    config.find(key);
  }
  model.formula = "Vh (twice when untied) + encoder + decoder layers + positions + 2h";
  also_inexact(model, "relative positions added to scores");
  return built(model);
}

}  // namespace orrery::models
