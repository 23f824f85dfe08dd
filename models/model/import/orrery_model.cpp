// Orrery's own JSON for a transformer: the fields of Model by name.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hardware/reading.hpp"
#include "models/model/import/families.hpp"

namespace orrery::models {
namespace {

/// A model with the defaults of the file's family.
Model preset(const Node& config) {
  constexpr Words<Family, 3> families{
      {{Family::gpt, "gpt"}, {Family::llama, "llama"}, {Family::bert, "bert"}}};
  Model model;
  model.family = config.word_or("family", families, Family::gpt);
  if (model.family == Family::llama) {
    model.norm = Norm::rms_norm;
    model.positions = Positions::rotary;
    model.activation = Activation::silu;
    model.gated_mlp = true;
    model.qkv_bias = model.output_bias = model.mlp_bias = false;
    model.tied_embeddings = false;
  }
  if (model.family == Family::bert) {
    model.causal = false;
    model.token_types = 2;
    model.final_norm = false;
    model.embedding_norm = model.head_transform = model.head_bias = model.pooler = true;
    model.post_norm = true;
  }
  return model;
}

void read_sizes(const Node& config, Model& model) {
  model.layers = config["layers"].integer(1, Limits::layers);
  model.hidden = config["hidden"].integer(1, Limits::hidden);
  model.heads = config["heads"].integer(1, Limits::heads);
  model.kv_heads = config.integer_or("kv_heads", 1, Limits::heads, model.heads);
  if (model.heads % model.kv_heads != 0) {
    config["kv_heads"].fail(fmt::format("{} key-value heads do not divide the {} attention heads",
                                        model.kv_heads, model.heads));
  }
  if (!config.has("head_dim") && model.hidden % model.heads != 0) {
    config["hidden"].fail(
        fmt::format("{} is not a multiple of the {} attention heads", model.hidden, model.heads));
  }
  model.head_dim = config.integer_or("head_dim", 1, Limits::head_dim, model.hidden / model.heads);
  model.vocab = config["vocab"].integer(1, Limits::vocab);
  const bool four_times = model.family != Family::llama;
  model.ffn_hidden = four_times
                         ? config.integer_or("ffn_hidden", 1, Limits::ffn_hidden, 4 * model.hidden)
                         : config["ffn_hidden"].integer(1, Limits::ffn_hidden);
  model.extra_position_rows = config.integer_or("extra_position_rows", 0, Limits::token_types, 0);
  model.embedding_dim = config.integer_or("embedding_dim", 1, Limits::hidden, 0);
  if (projects_embeddings(model) && model.family == Family::bert) {
    config["embedding_dim"].fail("is supported for decoders only; the family is bert");
  }
  model.token_types = config.integer_or("token_types", 0, Limits::token_types, model.token_types);
  model.sliding_window = config.integer_or("sliding_window", 0, Limits::positions, 0);
  model.attention_chunk = config.integer_or("attention_chunk", 0, Limits::positions, 0);
  model.full_attention =
      every_nth(model.layers, config.integer_or("full_attention_every", 0, Limits::layers, 0));
}

/// Reads the experts, and which layers have them.
void read_experts(const Node& config, Model& model) {
  model.experts = config.integer_or("experts", 0, Limits::experts, 0);
  if (model.experts == 0) return;
  model.experts_per_token = config["experts_per_token"].integer(1, model.experts);
  model.shared_ffn = config.integer_or("shared_ffn", 0, Limits::ffn_hidden, 0);
  model.dense_first = config.integer_or("dense_first", 0, model.layers, 0);
  model.expert_every = config.integer_or("expert_every", 1, model.layers, 1);
  const bool some_dense = model.dense_first > 0 || model.expert_every > 1;
  if (some_dense) model.dense_ffn = config["dense_ffn"].integer(1, Limits::ffn_hidden);
  model.router_bias = config.value_or("router_bias", false);
  model.expert_every = std::max<std::int64_t>(1, model.expert_every);
}

/// Reads latent attention (MLA).
void read_latents(const Node& config, Model& model) {
  const auto rank = config.find("kv_rank");
  if (!rank) return;
  model.kv_rank = rank->integer(1, Limits::hidden);
  model.query_rank = config.integer_or("query_rank", 0, Limits::hidden, 0);
  model.rotary_dim = config["rotary_dim"].integer(1, model.head_dim);
  model.value_dim = config["value_dim"].integer(1, Limits::head_dim);
  model.latent_epsilon = model.norm_epsilon;
}

void read_kinds(const Node& config, Model& model) {
  model.norm = config.word_or("norm", norm_words, model.norm);
  model.positions = config.word_or("positions", position_words, model.positions);
  model.activation = config.word_or("activation", activation_words, model.activation);
  const auto length = config.find("max_positions");
  if (length || model.positions == Positions::learned) {
    model.max_positions = config["max_positions"].integer(1, Limits::positions);
  }
}

void read_own_numerics(const Node& config, Model& model) {
  const auto read = [&](std::string_view key, double high, double& value) {
    if (const auto found = config.find(key)) value = hardware::within(*found, 0, high);
  };
  read("norm_epsilon", 1, model.norm_epsilon);
  read("initial_deviation", 10, model.initial_deviation);
  if (const auto base = config.find("rotary_base"))
    model.rotary.base = hardware::within(*base, 1e-6, 1e12);
}

void read_flags(const Node& config, Model& model) {
  const auto read = [&](std::string_view key, bool& flag) { flag = config.value_or(key, flag); };
  read("causal", model.causal);
  read("gated_mlp", model.gated_mlp);
  read("qkv_bias", model.qkv_bias);
  read("output_bias", model.output_bias);
  read("mlp_bias", model.mlp_bias);
  read("norm_bias", model.norm_bias);
  read("qk_norm", model.qk_norm);
  read("parallel_block", model.parallel_block);
  read("shared_norm", model.shared_norm);
  read("tied_embeddings", model.tied_embeddings);
  read("final_norm", model.final_norm);
  read("embedding_norm", model.embedding_norm);
  read("head_transform", model.head_transform);
  read("head_bias", model.head_bias);
  read("pooler", model.pooler);
  read("attention_sinks", model.attention_sinks);
  read("clamped_activation", model.clamped_activation);
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
               "attention_chunk",
               "full_attention_every",
               "norm_epsilon",
               "initial_deviation",
               "rotary_base"});
  Model model = preset(config);
  model.name = config.value_or<std::string>("name", "model");
  read_sizes(config, model);
  read_kinds(config, model);
  read_flags(config, model);
  read_own_numerics(config, model);
  read_experts(config, model);
  read_latents(config, model);
  return dense(model);
}

}  // namespace orrery::models
