#pragma once
// A transformer, independent of how it is parallelised: sizes, kinds of norm, MLP and positions,
// and its exact number of parameters.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/model/activation.hpp"
#include "models/model/norm.hpp"
#include "models/model/positions.hpp"
#include "models/model/rotary.hpp"
#include "models/model/routing.hpp"
#include "sim/input/document.hpp"

namespace orrery::models {

enum class Family : std::uint8_t { gpt, llama, bert, other };

/// Attention over the sequence, with keys and values of every head or of groups of heads.
struct AttentionPart {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool qkv_bias = true;
  bool output_bias = true;  // of the output projection
  bool qk_norm = false;
  std::int64_t window = 0;  // sliding window in tokens; 0: none
  std::int64_t chunk = 0;   // a token attends within its chunk (Llama 4); 0: no chunks
  /// With a window or chunks: does a layer attend to all tokens nevertheless? Empty: none does
  std::vector<bool> full;
  bool sinks = false;  // a learned logit per head in the softmax's sum (gpt-oss)
};

/// Latent attention (MLA): queries from a latent of query_rank (0: from the input), keys and values
/// from one of kv_rank, and in every key a rotated part of rotary_dim that all heads share.
struct LatentAttention {
  std::int64_t query_rank = 0;
  std::int64_t kv_rank = 0;  // 0: ordinary attention
  std::int64_t rotary_dim = 0;
  std::int64_t value_dim = 0;  // width of one head's value; 0: head_dim
  double epsilon = 1e-6;       // of the norms of latents
};

struct MlpPart {
  std::int64_t width = 0;  // of the hidden columns; with experts: of one expert
  bool gated = false;
  bool bias = true;
  Activation activation = Activation::gelu;
  bool clamped = false;  // experts clamp gate and value before the activation (gpt-oss)
};

/// Mixture of experts in place of the MLP. The first `dense_first` layers, and of the others all
/// but every `every`-th, have an MLP of `dense_width` instead.
struct ExpertsPart {
  std::int64_t count = 0;  // 0: none
  std::int64_t per_token = 0;
  std::int64_t shared_width = 0;  // of all shared experts together
  std::int64_t dense_width = 0;
  std::int64_t dense_first = 0;
  std::int64_t every = 1;
  bool router_bias = false;
  Routing routing;
};

struct NormsPart {
  Norm kind = Norm::layer_norm;
  bool bias = true;
  double epsilon = 1e-5;        // read by the executor only
  bool shared = false;          // of a parallel block: attention and MLP share one norm
  bool sandwich = false;        // two more per layer, after attention and MLP (Gemma 2)
  bool after_residual = false;  // the two are of x + attention(x) and x + mlp(x) (BERT)
  bool final = true;
  bool embedding = false;  // after the embedding (BLOOM, BERT)
};

/// From tokens to the first layer's input.
struct EmbeddingPart {
  std::int64_t vocab = 0;
  std::int64_t width = 0;                // of the table (OPT); 0: hidden
  std::int64_t max_positions = 0;        // the longest sequence that it supports
  std::int64_t extra_position_rows = 0;  // of a learned position table beyond those (OPT: 2)
  std::int64_t token_types = 0;          // segment embeddings of BERT
  Positions positions = Positions::learned;
  Rotary rotary;     // read by the executor only
  bool tied = true;  // the head multiplies by this table
};

/// From the last layer's output to the loss.
struct HeadPart {
  bool transform = false;  // BERT: dense + norm before the vocabulary
  bool bias = false;
  bool pooler = false;  // BERT: dense over the first token and the next-sentence classifier
  /// Output columns of a task head in place of the vocabulary head: 2 for the start and end of an
  /// answer (SQuAD). 0: vocabulary head
  std::int64_t task_outputs = 0;
};

/// Set for models that are counted in a tally (import/config.hpp).
struct ModelTally {
  std::int64_t attention_layers = 0;  // layers that attend over the sequence; 0: all
  std::int64_t gemm_parameters = 0;   // weights that multiply one token; 0: from the parts
  std::string formula;                // which formula counted the parameters
};

/// A decoder or encoder, dense or with experts. Biases are counted where they exist.
struct Model {
  std::string name;
  std::string type;  // `model_type` of its config: "llama"; empty: Orrery's own format
  Family family = Family::gpt;
  bool causal = true;  // false: encoder, attention sees every token
  std::int64_t hidden = 0;
  EmbeddingPart embedding;
  std::int64_t layers = 0;
  AttentionPart attention;
  LatentAttention latent;
  MlpPart mlp;
  ExpertsPart experts;
  NormsPart norms;
  bool parallel_block = false;  // attention and MLP read the same normalised input
  HeadPart head;
  double initial_deviation = 0.02;  // of weights before the first step; read by the executor only

  /// Multi-token-prediction modules (MTP) after the last layer: each is one more layer on the
  /// joined norms of the previous output and the next token's embedding, with the model's own
  /// embedding and head. Used in training, dropped for inference. Source  DeepSeek-AI 2024,
  /// "DeepSeek-V3", arXiv 2412.19437, section 2.2
  std::int64_t prediction_layers = 0;
  /// Width of ELECTRA's generator, a narrower encoder of as many layers that fills in masked
  /// tokens; this model then tells which tokens were replaced. 0: none Source  Clark et al. 2020,
  /// "ELECTRA", arXiv 2003.10555
  std::int64_t generator_hidden = 0;

  std::int64_t parameters = 0;         // exact
  std::int64_t active_parameters = 0;  // used per token; = parameters when dense
  ModelTally tally;
  std::string inexact;  // what the executor computes differently from the config; empty: nothing
  std::optional<std::string> not_simulated;  // why ("mixture of experts ..."), when only counted
  std::vector<std::string> ignored_keys;     // of the config, neither used nor known-irrelevant
};

/// Does the embedding width differ from the layers', so that a matrix projects in and another out?
bool projects_embeddings(const Model& model);
/// Width of a token's embedding and of the vocabulary head's input.
std::int64_t embedding_width(const Model& model);

/// Does this layer have experts?
bool has_experts(const Model& model, std::int64_t layer);
/// Is this layer without the model's window or chunks?
bool attends_fully(const Model& model, std::int64_t layer);
/// Layers as in AttentionPart::full: every n-th attends fully; none if n is 0.
std::vector<bool> every_nth(std::int64_t layers, std::int64_t n);
/// A model whose layers are all like this one: with experts or an MLP of `dense_width`, with or
/// without window and chunks.
Model layer_model(const Model& model, std::int64_t layer);

/// Rows of the learned position table, 0 without one.
std::int64_t position_rows(const Model& model);

/// ELECTRA's generator for this model: a BERT of width `generator_hidden` and the same depth.
Model generator_model(const Model& model);
/// The model that a prediction layer (MTP) is built from: the kind of the last layer, and the head.
Model prediction_model(const Model& model);

/// Reads a Hugging Face config.json (dispatch on `model_type`, nested `text_config` included) or
/// Orrery's own JSON (`"format": "orrery-model"` with the fields above). Errors: unknown type
/// (known ones listed), a required key missing, sizes out of range.
/// Model types that are counted but not simulated say why in `not_simulated`.
Model read_model(const Node& config);

/// The model types that read_model knows, sorted.
std::vector<std::string> model_types();

/// The fields that a Program is lowered from, in one line of text.
std::string text_of(const Model& model);

/// The JSON of a model of the catalogue, with its name and source.
/// Errors: `unknown model 'x'; known: ...`
Json model_config(std::string_view name);
std::vector<std::string> model_names();

}  // namespace orrery::models
