#pragma once
// A model, independent of how it is parallelised: embedding, layers, head, and its exact number of
// parameters.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/model/layer.hpp"
#include "models/model/rotary.hpp"
#include "sim/input/document.hpp"

namespace orrery::models {

enum class Family : std::uint8_t { gpt, llama, bert, other };

struct NormsPart {
  Norm kind = Norm::layer_norm;
  bool bias = true;
  double epsilon = 1e-5;        // read by the executor only
  bool shared = false;          // of a parallel block: attention and MLP share one norm
  double offset = 0;            // added to every weight, which then begins as 1 - offset (Gemma: 1)
  bool sandwich = false;        // two more per layer, after attention and MLP (Gemma 2)
  bool of_outputs = false;      // the two are of attention(x) and mlp(x), not of x (OLMo 2)
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
  double multiplier = 1;                 // of what the table gives (Gemma)
  Positions positions = Positions::learned;
  Rotary rotary;     // read by the executor only
  bool tied = true;  // the head multiplies by this table
};

/// From the last layer's output to the loss.
struct HeadPart {
  bool transform = false;  // BERT: dense, activation and norm before the vocabulary
  Activation activation = Activation::gelu;  // of the transform
  bool bias = false;
  bool pooler = false;  // BERT: dense over the first token and the next-sentence classifier
  /// Output columns of a task head in place of the vocabulary head: 2 for the start and end of an
  /// answer (SQuAD). 0: vocabulary head
  std::int64_t task_outputs = 0;
};

struct Model;

/// A frozen encoder in front of a language model. Patches of a sequence's images pass through it
/// without backward; groups of `merged` patches become one row each, which a trained projector of
/// two matrices leads to the model's width, in the places of as many tokens of the sequence.
/// Source  Liu et al. 2023, "Visual instruction tuning", arXiv 2304.08485, section 4.1, with the
///         projector of arXiv 2310.03744, section 3.3; merged patches: Qwen2-VL, arXiv 2409.12191
struct FrontEncoder {
  std::shared_ptr<const Model> encoder;  // its layers and its last norm; no table, no head
  std::int64_t images = 1;               // of a sequence
  std::int64_t patches = 0;              // of an image; they attend to each other
  std::int64_t patch_columns = 0;        // numbers of one patch: channels * side * side
  std::int64_t merged = 1;               // patches that become one row
  std::int64_t projector = 0;            // width between the projector's matrices

  /// Rows of a sequence's images in the language model.
  std::int64_t rows() const { return images * patches / merged; }
};

/// The encoder of a model whose decoder attends to it (T5, BART, Whisper): the model's first
/// layers. They have sequences of their own, whose tokens all see each other; what the last of them
/// gives, after a norm where the decoder's last layer has one, is what every cross-attention reads.
/// Width, norms and, unless it has one of its own, the table of tokens are the decoder's.
/// Without layers the output is given: rows that a frozen encoder of images made before the step
/// (Mllama), to which no gradient leads.
struct EncoderPart {
  std::int64_t layers = 0;         // the first so many of the model's
  std::int64_t seq_len = 0;        // of a sample: tokens, or steps of sound
  std::int64_t vocab = 0;          // of a table of its own; 0: the decoder's
  std::int64_t position_rows = 0;  // of its own table, learned or fixed; 0: without
  /// Numbers of a frame of sound, which its input has in place of tokens: two convolutions of three
  /// taps lead to the model's width, of which the second halves the frames. 0: tokens
  /// Source  Radford et al. 2022, arXiv 2212.04356, section 2.2
  std::int64_t frame_columns = 0;
  bool length_assumed = false;  // nothing states `seq_len`

  /// Is its output an input of the step?
  bool given() const { return layers == 0; }

  friend bool operator==(const EncoderPart&, const EncoderPart&) = default;
};

/// A decoder or encoder, dense or with experts. Biases are counted where they exist.
struct Model {
  std::string name;
  std::string type;  // `model_type` of its config: "llama"; empty: Orrery's own format
  Family family = Family::gpt;
  bool causal = true;  // false: encoder, attention sees every token
  std::int64_t hidden = 0;
  EmbeddingPart embedding;
  LayerList layers;
  NormsPart norms;
  bool parallel_block = false;  // attention and MLP read the same normalised input
  HeadPart head;
  double initial_deviation = 0.02;  // of weights before the first step; read by the executor only

  /// Multi-token-prediction modules (MTP) after the last layer: each is one more layer on the
  /// joined norms of the previous output and the next token's embedding, with the model's own
  /// embedding and head. Used in training, dropped for inference. Source  DeepSeek-AI 2024,
  /// "DeepSeek-V3", arXiv 2412.19437, section 2.2
  std::int64_t prediction_layers = 0;
  /// Layers of one such module, in order; empty: one like the last. Nemotron 3: attention, experts.
  std::vector<Layer> prediction_module{};
  /// Are the modules one and the same, run again?  Source  NVIDIA-NeMo/Megatron-Bridge v0.4.0,
  /// recipes/nemotronh/nemotron_3_super.py (mtp_num_layers 2, mtp_use_repeated_layer)
  bool prediction_shared = false;
  /// Width of ELECTRA's generator, a narrower encoder of as many layers that fills in masked
  /// tokens; this model then tells which tokens were replaced. 0: none Source  Clark et al. 2020,
  /// "ELECTRA", arXiv 2003.10555
  std::int64_t generator_hidden = 0;

  std::optional<FrontEncoder> front{};   // of images; frozen
  std::optional<EncoderPart> encoder{};  // which cross-attention reads

  /// Of a model that is no transformer: its operations, of which `layers` are parts. A sample is
  /// then a sequence of one token.
  std::shared_ptr<const OperationList> list{};
  std::int64_t list_step = 1;  // of a loop: which step; operations of every n-th run in those that
                               // n divides

  std::int64_t parameters = 0;         // exact
  std::int64_t active_parameters = 0;  // used per token; = parameters when dense
  Tally further;                       // of what no part states
  std::string formula;                 // which sum the parameters are
  std::string inexact;  // what the executor computes differently from the config; empty: nothing
  std::optional<std::string> not_simulated;  // why ("mixture of experts ..."), when only counted
  std::vector<std::string> ignored_keys;     // of the config, neither used nor known-irrelevant
  std::vector<std::string> assumptions;      // `/KEY: VALUE assumed` of what it leaves open
};

/// What a step processes: "tokens"; of a list of operations "samples", or without training "steps".
std::string_view unit_word(const Model& model);

/// Does the embedding width differ from the layers', so that a matrix projects in and another out?
bool projects_embeddings(const Model& model);
/// Width of a token's embedding and of the vocabulary head's input.
std::int64_t embedding_width(const Model& model);

/// Tokens of a sample that cross-attention reads; 0 in a model without.
std::int64_t source_length(const Model& model);
/// Does a layer attend to an encoder's output?
bool crosses(const Model& model);

/// The attention of the first layer that has one; without any, one of no heads.
const AttentionPart& usual_attention(const Model& model);
/// The experts of the first layer that has some; without any, none.
const ExpertsPart& usual_experts(const Model& model);
/// The MLP of an expert, or in a model without experts that of its first layer.
const MlpPart& usual_mlp(const Model& model);
/// The longest chunk within which layers attend; 0 without.
std::int64_t longest_chunk(const Model& model);
/// The layers of a module that predicts a further token.
std::vector<Layer> prediction_module(const Model& model);
/// Layers with experts.
std::int64_t expert_layers(const Model& model);
/// Flags for layers of which every n-th is chosen; none if n is 0.
std::vector<bool> every_nth(std::int64_t layers, std::int64_t n);

/// Rows of the learned position table, 0 without one.
std::int64_t position_rows(const Model& model);

/// ELECTRA's generator for this model: a BERT of width `generator_hidden` and the same depth.
Model generator_model(const Model& model);

/// A model as most configs state it: one attention, one MLP or mixture of experts, and which layers
/// differ.
struct ModelDraft : Model {
  std::int64_t depth = 0;
  AttentionPart attention{};
  MlpPart mlp{};  // with experts: of one expert
  ExpertsPart experts{};
  std::int64_t dense_width = 0;    // of the MLPs of layers without experts
  std::int64_t encoder_width = 0;  // of the MLPs of an encoder's layers; 0: as the decoder's
  std::vector<bool> full{};        // which layers are without the window or chunks; empty: none
  std::vector<bool> dense{};       // which layers are without experts; empty: none
};

/// ModelDraft::dense where the first `first` layers are without experts, and of the others all but
/// every `every`-th.
std::vector<bool> dense_layers(std::int64_t layers, std::int64_t first, std::int64_t every);

/// The model with its layers, its counts and their formula.
Model built(ModelDraft draft);

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
