#pragma once
// What a transformer is, independent of how it is cut: sizes, kinds of norm, MLP and positions,
// and its exact number of parameters.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/input/document.hpp"

namespace orrery::models {

enum class Family : std::uint8_t { gpt, llama, bert, other };
enum class Norm : std::uint8_t { layer_norm, rms_norm };
enum class Positions : std::uint8_t { none, learned, rotary, alibi };
enum class Activation : std::uint8_t { gelu, silu, relu };

/// A dense decoder or encoder as Orrery simulates it. Biases are counted where they exist.
struct Model {
  std::string name;
  Family family = Family::gpt;
  bool causal = true;  // false: encoder, attention sees every token
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn_hidden = 0;
  std::int64_t vocab = 0;
  std::int64_t max_positions = 0;  // rows of a learned position table
  std::int64_t token_types = 0;    // segment embeddings of BERT
  Norm norm = Norm::layer_norm;
  Positions positions = Positions::learned;
  Activation activation = Activation::gelu;
  bool gated_mlp = false;
  bool qkv_bias = true;
  bool output_bias = true;  // attention output projection
  bool mlp_bias = true;
  bool norm_bias = true;
  bool qk_norm = false;
  bool parallel_block = false;   // attention and MLP read the same normalised input
  bool shared_norm = false;      // ... and share one norm
  bool tied_embeddings = true;
  bool final_norm = true;
  bool embedding_norm = false;   // BLOOM, BERT
  bool head_transform = false;   // BERT: dense + norm before the vocabulary
  bool head_bias = false;
  std::int64_t sliding_window = 0;  // 0: full attention

  std::int64_t parameters = 0;         // exact
  std::int64_t active_parameters = 0;  // touched per token; = parameters when dense
  std::string parameter_formula;       // which formula counted them
  std::optional<std::string> not_simulated;  // why ("mixture of experts ..."), when counted only
  std::vector<std::string> ignored_keys;     // of the config, neither used nor known-irrelevant
};

/// Parameters of a dense Model by its fields: what `Model::parameters` must equal.
std::int64_t count_parameters(const Model& model);

/// Reads a Hugging Face config.json (dispatch on `model_type`, nested `text_config` included) or
/// Orrery's own JSON (`"format": "orrery-model"` with the fields above). Errors: unknown type
/// (known ones listed), a required key missing, sizes out of range.
Model read_model(const Node& config);

/// Forward FLOPs of one token at sequence length s, causal attention counted at half: 2 per
/// multiply-add of every GEMM, LM head included. Backward is twice that.
double forward_flops_per_token(const Model& model, std::int64_t seq_len);

}  // namespace orrery::models
