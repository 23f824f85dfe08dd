// Orrery's own JSON for a transformer: the fields of Model by name.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hardware/reading.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

/// A model with the defaults of the file's family.
ModelDraft preset(const Node& config) {
  constexpr Words<Family, 3> families{
      {{Family::gpt, "gpt"}, {Family::llama, "llama"}, {Family::bert, "bert"}}};
  ModelDraft model;
  model.family = config.word_or("family", families, Family::gpt);
  if (model.family == Family::llama) {
    model.norms.kind = Norm::rms_norm;
    model.embedding.positions = Positions::rotary;
    model.mlp.activation = Activation::silu;
    model.mlp.gated = true;
    model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias = false;
    model.embedding.tied = false;
  }
  if (model.family == Family::bert) {
    model.causal = false;
    model.embedding.token_types = 2;
    model.norms.final = false;
    model.norms.embedding = model.head.transform = model.head.bias = model.head.pooler = true;
    model.norms.after_residual = true;
  }
  return model;
}

void read_sizes(const Node& config, ModelDraft& model) {
  model.depth = config["layers"].integer(1, Limits::layers);
  model.hidden = config["hidden"].integer(1, Limits::hidden);
  model.attention.heads = config["heads"].integer(1, Limits::heads);
  model.attention.kv_heads = config.integer_or("kv_heads", 1, Limits::heads, model.attention.heads);
  if (model.attention.heads % model.attention.kv_heads != 0) {
    config["kv_heads"].fail(fmt::format("{} key-value heads do not divide the {} attention heads",
                                        model.attention.kv_heads, model.attention.heads));
  }
  if (!config.has("head_dim") && model.hidden % model.attention.heads != 0) {
    config["hidden"].fail(fmt::format("{} is not a multiple of the {} attention heads",
                                      model.hidden, model.attention.heads));
  }
  model.attention.head_dim =
      config.integer_or("head_dim", 1, Limits::head_dim, model.hidden / model.attention.heads);
  model.embedding.vocab = config["vocab"].integer(1, Limits::vocab);
  const bool four_times = model.family != Family::llama;
  model.mlp.width = four_times
                        ? config.integer_or("ffn_hidden", 1, Limits::ffn_hidden, 4 * model.hidden)
                        : config["ffn_hidden"].integer(1, Limits::ffn_hidden);
  model.embedding.extra_position_rows =
      config.integer_or("extra_position_rows", 0, Limits::token_types, 0);
  model.embedding.width = config.integer_or("embedding_dim", 1, Limits::hidden, 0);
  if (projects_embeddings(model) && model.family == Family::bert) {
    config["embedding_dim"].fail("is supported for decoders only; the family is bert");
  }
  model.embedding.token_types =
      config.integer_or("token_types", 0, Limits::token_types, model.embedding.token_types);
  model.attention.window = config.integer_or("sliding_window", 0, Limits::positions, 0);
  model.attention.chunk = config.integer_or("attention_chunk", 0, Limits::positions, 0);
  model.full =
      every_nth(model.depth, config.integer_or("full_attention_every", 0, Limits::layers, 0));
}

/// Reads the experts, and which layers have them.
void read_experts(const Node& config, ModelDraft& model) {
  model.experts.count = config.integer_or("experts", 0, Limits::experts, 0);
  if (model.experts.count == 0) return;
  model.experts.per_token = config["experts_per_token"].integer(1, model.experts.count);
  model.experts.shared_width = config.integer_or("shared_ffn", 0, Limits::ffn_hidden, 0);
  const std::int64_t first = config.integer_or("dense_first", 0, model.depth, 0);
  const std::int64_t every = config.integer_or("expert_every", 1, model.depth, 1);
  if (first > 0 || every > 1) {
    model.dense_width = config["dense_ffn"].integer(1, Limits::ffn_hidden);
    model.dense = dense_layers(model.depth, first, every);
  }
  model.experts.router_bias = config.value_or("router_bias", false);
}

/// Reads latent attention (MLA).
void read_latents(const Node& config, ModelDraft& model) {
  const auto rank = config.find("kv_rank");
  if (!rank) return;
  LatentAttention latents;
  latents.kv_rank = rank->integer(1, Limits::hidden);
  latents.query_rank = config.integer_or("query_rank", 0, Limits::hidden, 0);
  latents.rotary_dim = config["rotary_dim"].integer(1, model.attention.head_dim);
  latents.epsilon = model.norms.epsilon;
  model.attention.value_dim = config["value_dim"].integer(1, Limits::head_dim);
  model.attention.latents = latents;
}

}  // namespace

void read_images(const Node& images, Model& model) {
  constexpr std::int64_t most_images = 1 << 12, longest_side = 1 << 10, most_channels = 1 << 10;
  images.only({"count", "patches", "patch", "channels", "merged", "projector", "layers", "hidden",
               "heads", "ffn_hidden", "norm", "positions", "activation", "gated_mlp"});
  ModelDraft encoder;
  encoder.name = "images";
  encoder.family = Family::other;
  encoder.causal = false;
  encoder.depth = images["layers"].integer(1, Limits::layers);
  encoder.hidden = images["hidden"].integer(1, Limits::hidden);
  encoder.attention.heads = encoder.attention.kv_heads = images["heads"].integer(1, Limits::heads);
  if (encoder.hidden % encoder.attention.heads != 0) {
    images["hidden"].fail(fmt::format("{} is not a multiple of the {} attention heads",
                                      encoder.hidden, encoder.attention.heads));
  }
  encoder.attention.head_dim = encoder.hidden / encoder.attention.heads;
  encoder.mlp.width = images.integer_or("ffn_hidden", 1, Limits::ffn_hidden, 4 * encoder.hidden);
  encoder.mlp.gated = images.value_or("gated_mlp", false);
  encoder.mlp.activation = images.word_or("activation", activation_words, Activation::gelu);
  encoder.norms.kind = images.word_or("norm", norm_words, Norm::layer_norm);
  encoder.embedding.positions = images.word_or("positions", position_words, Positions::learned);
  FrontEncoder front;
  front.images = images.integer_or("count", 1, most_images, 1);
  front.patches = images["patches"].integer(1, Limits::positions);
  const std::int64_t side = images["patch"].integer(1, longest_side);
  front.patch_columns = images.integer_or("channels", 1, most_channels, 3) * side * side;
  front.merged = images.integer_or("merged", 1, front.patches, 1);
  if (front.patches % front.merged != 0) {
    images["merged"].fail(
        fmt::format("{} does not divide the {} patches of an image", front.merged, front.patches));
  }
  front.projector = images.integer_or("projector", 1, Limits::ffn_hidden, model.hidden);
  encoder.embedding.max_positions = front.patches;
  front.encoder = std::make_shared<const Model>(built(std::move(encoder)));
  model.front = std::move(front);
}

namespace {

/// An encoder before the decoder's layers, whose heads and norms are the same.
void read_encoder(const Node& encoder, ModelDraft& model) {
  encoder.only({"layers", "source_len", "ffn_hidden", "max_positions", "vocab", "frame_columns"});
  const bool plain = model.causal && !model.parallel_block && !model.front;
  if (!plain) encoder.fail("needs a causal decoder without parallel_block and images");
  if (model.attention.window > 0) {
    encoder.fail("is not supported with sliding_window: an encoder's attention would have it, too");
  }
  if (encoder.has("frame_columns") && encoder.has("vocab")) {
    encoder["vocab"].fail("is that of a table, but frame_columns state frames of sound");
  }
  if (encoder.has("ffn_hidden") && model.experts.count > 0) {
    encoder["ffn_hidden"].fail("has no effect: the encoder's layers have the decoder's experts");
  }
  EncoderPart of{.layers = encoder["layers"].integer(1, Limits::layers),
                 .seq_len = encoder["source_len"].integer(1, Limits::positions),
                 .vocab = encoder.integer_or("vocab", 1, Limits::vocab, 0),
                 .frame_columns = encoder.integer_or("frame_columns", 1, Limits::hidden, 0)};
  if (model.embedding.positions == Positions::learned || of.frame_columns > 0) {
    of.position_rows = encoder.integer_or("max_positions", 1, Limits::positions,
                                          std::max(of.seq_len, model.embedding.max_positions));
    if (of.position_rows < of.seq_len) {
      encoder["max_positions"].fail(
          fmt::format("{} is below source_len {}", of.position_rows, of.seq_len));
    }
  } else if (encoder.has("max_positions")) {
    encoder["max_positions"].fail("is of a table of positions, which this model does not have");
  }
  model.encoder_width = encoder.integer_or("ffn_hidden", 1, Limits::ffn_hidden, model.mlp.width);
  model.encoder = of;
}

void read_kinds(const Node& config, ModelDraft& model) {
  model.norms.kind = config.word_or("norm", norm_words, model.norms.kind);
  model.embedding.positions =
      config.word_or("positions", position_words, model.embedding.positions);
  model.mlp.activation = config.word_or("activation", activation_words, model.mlp.activation);
  const auto length = config.find("max_positions");
  if (length || model.embedding.positions == Positions::learned) {
    model.embedding.max_positions = config["max_positions"].integer(1, Limits::positions);
  }
}

void read_own_numerics(const Node& config, ModelDraft& model) {
  const auto read = [&](std::string_view key, double high, double& value) {
    if (const auto found = config.find(key)) value = hardware::within(*found, 0, high);
  };
  read("norm_epsilon", 1, model.norms.epsilon);
  read("initial_deviation", 10, model.initial_deviation);
  if (const auto base = config.find("rotary_base"))
    model.embedding.rotary.base = hardware::within(*base, 1e-6, 1e12);
}

/// Gates and values that are clamped, and at which limit.
void read_clamp(const Node& config, ModelDraft& model) {
  model.mlp.clamped = config.value_or("clamped_activation", model.mlp.clamped);
  const auto limit = config.find("activation_limit");
  if (limit && !model.mlp.clamped) limit->fail("has no effect: clamped_activation is false");
  if (limit) model.mlp.limit = hardware::within(*limit, 1e-3, 1e6);
  if (model.mlp.clamped && !limit) {
    model.assumptions.push_back(
        fmt::format("/activation_limit: not stated; {:g} assumed, as GPT-OSS", model.mlp.limit));
  }
}

void read_flags(const Node& config, ModelDraft& model) {
  const auto read = [&](std::string_view key, bool& flag) { flag = config.value_or(key, flag); };
  read("causal", model.causal);
  read("gated_mlp", model.mlp.gated);
  read("qkv_bias", model.attention.qkv_bias);
  read("output_bias", model.attention.output_bias);
  read("mlp_bias", model.mlp.bias);
  read("norm_bias", model.norms.bias);
  read("qk_norm", model.attention.qk_norm);
  read("parallel_block", model.parallel_block);
  read("shared_norm", model.norms.shared);
  read("tied_embeddings", model.embedding.tied);
  read("final_norm", model.norms.final);
  read("embedding_norm", model.norms.embedding);
  read("head_transform", model.head.transform);
  read("head_bias", model.head.bias);
  read("pooler", model.head.pooler);
  read("attention_sinks", model.attention.sinks);
}

}  // namespace

Model read_orrery_model(const Node& config) {
  config["format"].one_of({"orrery-model"});
  config.only({"format",
               "name",
               "source",
               "family",
               "causal",
               "layers",
               "hidden",
               "heads",
               "kv_heads",
               "head_dim",
               "ffn_hidden",
               "vocab",
               "max_positions",
               "extra_position_rows",
               "token_types",
               "norm",
               "positions",
               "activation",
               "gated_mlp",
               "qkv_bias",
               "output_bias",
               "mlp_bias",
               "norm_bias",
               "qk_norm",
               "parallel_block",
               "shared_norm",
               "tied_embeddings",
               "final_norm",
               "embedding_norm",
               "head_transform",
               "head_bias",
               "pooler",
               "sliding_window",
               "embedding_dim",
               "experts",
               "experts_per_token",
               "shared_ffn",
               "dense_ffn",
               "dense_first",
               "expert_every",
               "router_bias",
               "query_rank",
               "kv_rank",
               "rotary_dim",
               "value_dim",
               "attention_sinks",
               "clamped_activation",
               "activation_limit",
               "attention_chunk",
               "full_attention_every",
               "norm_epsilon",
               "initial_deviation",
               "rotary_base",
               "images",
               "encoder"});
  ModelDraft model = preset(config);
  model.name = config.value_or<std::string>("name", "model");
  read_sizes(config, model);
  read_kinds(config, model);
  read_flags(config, model);
  read_clamp(config, model);
  read_own_numerics(config, model);
  read_experts(config, model);
  read_latents(config, model);
  if (const auto images = config.find("images")) read_images(*images, model);
  if (const auto encoder = config.find("encoder")) read_encoder(*encoder, model);
  return built(model);
}

}  // namespace orrery::models
