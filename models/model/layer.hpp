#pragma once
// A layer as two parts: one that mixes the tokens of a sequence, and one that works on each token.
// A part states its fields and its matrices, each once: parameters, FLOPs and adapters are sums
// over the matrices, and blocks are built from the same ones (operations/parts). A part that is
// only counted says so by name.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "models/model/kinds.hpp"
#include "sim/words.hpp"

namespace orrery::models {

/// Matrices that may have an adapter: those of a layer as one GEMM multiplies them; the parts of
/// those that other stacks keep as matrices of their own, each with an adapter of its own; the
/// embedding table and the vocabulary head. All but the first have the words of Hugging Face's
/// modules.
/// Source  Hu et al. 2021, "LoRA", arXiv 2106.09685; target_modules of LoraConfig, Hugging Face's
///         PEFT 0.14
enum class LoraTarget : std::uint8_t {
  qkv,
  projection,
  up,
  down,
  query,
  key,
  value,
  gate_part,
  up_part,
  embedding,
  head
};
inline constexpr Words<LoraTarget, 11> lora_target_words{{{LoraTarget::qkv, "qkv"},
                                                          {LoraTarget::projection, "projection"},
                                                          {LoraTarget::up, "up"},
                                                          {LoraTarget::down, "down"},
                                                          {LoraTarget::query, "q_proj"},
                                                          {LoraTarget::key, "k_proj"},
                                                          {LoraTarget::value, "v_proj"},
                                                          {LoraTarget::gate_part, "gate_proj"},
                                                          {LoraTarget::up_part, "up_proj"},
                                                          {LoraTarget::embedding, "embed_tokens"},
                                                          {LoraTarget::head, "lm_head"}}};

/// Neighbouring output columns of a matrix that may have an adapter of their own.
struct MatrixPart {
  LoraTarget target{};
  std::int64_t columns = 0;
};

/// Equal matrices [in, out] of a part, one after the other or, with experts, next to each other.
struct LayerMatrix {
  std::string name;  // "qkv"
  std::int64_t in = 0, out = 0;
  bool bias = false;
  std::int64_t copies = 1;  // how many a layer has: of experts, one each
  std::int64_t met = 1;     // how many of them multiply a token
  std::optional<LoraTarget> target{};
  std::vector<MatrixPart> parts{};  // in order, all columns; empty: it is one module everywhere
  bool of_source = false;           // multiplies an encoder's output, not the layer's own tokens
};

/// Number of weights of an adapter's two matrices, over its rank, next to one such matrix: in + out
/// of the whole, or of each part that is a target.
std::int64_t adapter_columns(const LayerMatrix& matrix, const WordSet<LoraTarget>& targets);

/// Parameters: all, those that one token uses, and those that multiply it in GEMMs.
struct Tally {
  std::int64_t total = 0, touched = 0, gemm = 0;

  /// Weights multiplied with every token.
  void matrix(std::int64_t count) { add({count, count, count}); }
  /// Norms, biases and looked-up tables.
  void vector(std::int64_t count) { add({count, count, 0}); }
  /// `all` experts, of which each token uses `chosen`; weights per expert.
  void experts(std::int64_t all, std::int64_t chosen, std::int64_t matrices) {
    add({all * matrices, chosen * matrices, chosen * matrices});
  }
  void add(const LayerMatrix& each);
  void add(const Tally& other, std::int64_t times = 1);

  friend bool operator==(const Tally&, const Tally&) = default;
};

/// Latent attention (MLA): queries from a latent of query_rank (0: from the input), keys and values
/// from one of kv_rank, and in every key a rotated part of rotary_dim that all heads share.
/// Source  DeepSeek-AI 2024, arXiv 2405.04434, section 2.1
struct LatentAttention {
  std::int64_t query_rank = 0;
  std::int64_t kv_rank = 0;
  std::int64_t rotary_dim = 0;
  double epsilon = 1e-6;  // of the norms of latents

  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

/// An indexer of sparse attention: `heads` of width `dim` score every earlier token, and a token
/// attends to the `top` with the highest scores. Layers may take the tokens that an earlier layer
/// selected.
/// Source  DeepSeek-AI 2025, DeepSeek-V3.2-Exp, inference/model.py (class Indexer)
struct Indexer {
  std::int64_t heads = 0, dim = 0, top = 0;
  bool shared = false;  // has no indexer of its own

  friend bool operator==(const Indexer&, const Indexer&) = default;
};

/// Attention over the sequence, with keys and values of every head or of groups of heads.
struct AttentionPart {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;  // width of one head's value; 0: head_dim
  bool qkv_bias = true;
  bool output_bias = true;  // of the output projection
  bool qk_norm = false;
  std::int64_t window = 0;  // sliding window in tokens; 0: none
  std::int64_t chunk = 0;   // a token attends within its chunk (Llama 4); 0: no chunks
  bool sinks = false;       // a learned logit per head in the softmax's sum (gpt-oss)
  bool gated = false;       // its output is multiplied by a sigmoid of the input, as wide
  bool encodes = false;     // of an encoder before a decoder: every token sees all of the source
  /// Base of its rotary positions, unscaled, in place of the model's (Gemma 3's windows).
  std::optional<double> rotary_base{};
  std::optional<LatentAttention> latents{};
  std::optional<Indexer> indexer{};  // with latents only

  std::int64_t value_width() const { return value_dim > 0 ? value_dim : head_dim; }
  std::int64_t query_columns() const { return heads * head_dim; }
  std::int64_t key_columns() const { return kv_heads * head_dim; }
  std::int64_t value_columns() const { return kv_heads * value_width(); }
  /// Columns of the expanded keys and values of one head, without the shared rotated part.
  std::int64_t expanded_columns() const { return head_dim - latents->rotary_dim + value_width(); }
  /// Does it see the whole sequence?
  bool full() const { return window == 0 && chunk == 0; }

  friend bool operator==(const AttentionPart&, const AttentionPart&) = default;
};

/// Attention of a decoder's tokens to an encoder's output, whole and in another sequence: queries
/// of the layer's input, keys and values of that output. Leaves out norms and gates of its own.
/// Source  Vaswani et al. 2017, arXiv 1706.03762, section 3.2.3
struct CrossAttentionPart {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  bool qkv_bias = true;
  bool output_bias = true;

  std::int64_t query_columns() const { return heads * head_dim; }
  std::int64_t key_columns() const { return kv_heads * head_dim; }

  friend bool operator==(const CrossAttentionPart&, const CrossAttentionPart&) = default;
};

/// Cross-attention with the heads and biases of a layer's attention to itself.
CrossAttentionPart cross_of(const AttentionPart& attention);

/// Mamba-2: a convolution along the sequence, a scan of heads over a state, a gated norm. Groups of
/// heads share what leads into the state and out of it.
/// Source  Dao and Gu 2024, arXiv 2405.21060; NVIDIA 2025, arXiv 2504.03624
struct Mamba2Part {
  std::int64_t heads = 0, head_dim = 0;
  std::int64_t groups = 0, state = 0;
  std::int64_t taps = 4;     // of the convolution
  std::int64_t chunk = 256;  // tokens that the scan works on at once
  double least_step = 0;     // steps are at least as long

  std::int64_t inner() const { return heads * head_dim; }
  /// Columns that are convolved: the heads' and both sides of the state.
  std::int64_t convolved() const { return inner() + 2 * groups * state; }

  friend bool operator==(const Mamba2Part&, const Mamba2Part&) = default;
};

/// Gated delta rule: linear attention whose state forgets by a gate and corrects what it holds,
/// with a convolution before it and a gated norm after. Source  Yang et al. 2024, arXiv 2412.06464;
/// Qwen3NextGatedDeltaNet of the transformers library. Kimi's forgets by a gate for each channel of
/// its keys; that and the gate of the output come from the input through `gate_rank` columns each.
/// Source  Kimi Team 2025, arXiv 2510.26692; KimiDeltaAttention of the transformers library
struct DeltaPart {
  std::int64_t key_heads = 0, key_dim = 0;
  std::int64_t value_heads = 0, value_dim = 0;
  std::int64_t taps = 4;
  std::int64_t gate_rank = 0;  // 0: one gate a head, and an output gate of full rank
  static constexpr std::int64_t chunk = 64;

  std::int64_t values() const { return value_heads * value_dim; }
  std::int64_t convolved() const { return 2 * key_heads * key_dim + values(); }

  friend bool operator==(const DeltaPart&, const DeltaPart&) = default;
};

struct MlpPart {
  std::int64_t width = 0;  // of the hidden columns
  bool gated = false;
  bool bias = true;
  Activation activation = Activation::gelu;
  bool clamped = false;  // gate and value are clamped before the activation (gpt-oss)
  double limit = 7;      // at which they are. Source  swiglu_limit of gpt-oss's config

  friend bool operator==(const MlpPart&, const MlpPart&) = default;
};

/// Mixture of experts.
struct ExpertsPart {
  std::int64_t count = 0;
  std::int64_t per_token = 0;
  std::int64_t shared_width = 0;  // of all shared experts together
  bool shared_gate = false;       // their output is multiplied by a sigmoid of the input
  std::int64_t narrow = 0;        // width of the tokens that experts are sent; 0: hidden
  bool router_bias = false;
  Routing routing{};
  MlpPart mlp{};  // of one expert

  /// The shared experts as one MLP.
  MlpPart shared() const;

  friend bool operator==(const ExpertsPart&, const ExpertsPart&) = default;
};

class OperationList;

/// A layer of a model that is given as a list of operations (operation_list.hpp).
struct ListedPart {
  std::shared_ptr<const OperationList> list;
  std::int64_t kind = 0;  // its kind of layer in the list

  friend bool operator==(const ListedPart&, const ListedPart&) = default;
};

/// A part that is counted, not simulated.
struct CountedPart {
  std::string name;  // "linear attention"
  Tally count{};

  friend bool operator==(const CountedPart&, const CountedPart&) = default;
};

/// A layer without that part.
struct NoPart {
  friend bool operator==(const NoPart&, const NoPart&) = default;
};

struct Layer {
  std::variant<NoPart, AttentionPart, Mamba2Part, DeltaPart, CountedPart, ListedPart> mixer{};
  std::variant<NoPart, MlpPart, ExpertsPart, CountedPart> channel{};
  std::optional<CrossAttentionPart> cross{};  // between the two, after a norm of its own

  const AttentionPart* attention() const { return std::get_if<AttentionPart>(&mixer); }
  const ExpertsPart* experts() const { return std::get_if<ExpertsPart>(&channel); }
  const ListedPart* listed() const { return std::get_if<ListedPart>(&mixer); }
  /// Its MLP, or that of one of its experts.
  const MlpPart* mlp() const;
  /// Is it of an encoder, whose sequences have a length of their own?
  bool encodes() const { return attention() != nullptr && attention()->encodes; }
  /// Parts that are there: 1 to 3, each after a norm of its own.
  int parts() const;

  friend bool operator==(const Layer&, const Layer&) = default;
};

/// Does its mixer pass a state along the sequence?
bool recurs(const Layer& layer);

/// The matrices of a layer's parts in a model of width `hidden`; those of a part that is only
/// counted are not known one by one.
///   attention         qkv (and gate), projection; with latents down- and up-projections for qkv
///   cross-attention   cross.query, cross.key_value of the encoder's tokens, cross.projection
///   Mamba-2, delta    mixer.in, mixer.out, and of Kimi's mixer.decay_down, mixer.decay_up,
///                     mixer.gate_down, mixer.gate_up
///   MLP               up (gate and up), down
///   experts           router, experts.up, experts.down, shared.up, shared.down, shared.gate, and
///                     experts.narrow and experts.widen around them
std::vector<LayerMatrix> matrices_of(const Layer& layer, std::int64_t hidden);
std::vector<LayerMatrix> matrices_of(const AttentionPart& attention, std::int64_t hidden);
std::vector<LayerMatrix> matrices_of(const CrossAttentionPart& cross, std::int64_t hidden);
std::vector<LayerMatrix> matrices_of(const Mamba2Part& mamba, std::int64_t hidden);
std::vector<LayerMatrix> matrices_of(const DeltaPart& delta, std::int64_t hidden);
std::vector<LayerMatrix> matrices_of(const MlpPart& mlp, std::int64_t hidden,
                                     const std::string& prefix);
std::vector<LayerMatrix> matrices_of(const ExpertsPart& experts, std::int64_t hidden);
/// One of them.
LayerMatrix matrix_of(const std::vector<LayerMatrix>& all, std::string_view name);

/// What tensor parallelism cuts a part by: it must divide `count`, unless `shared` ranks may have
/// the same one, which then must be divided or multiplied.
struct PartCut {
  std::string what;  // "32 attention heads"
  std::int64_t count = 0;
  bool shared = false;
};
std::vector<PartCut> cuts_of(const Layer& layer);

/// A layer's parameters without its norms: matrices, biases, sinks, norms of heads and latents.
Tally tally_of(const Layer& layer, std::int64_t hidden);

/// Tokens that a token of sparse attention attends to, averaged over a causal sequence of s: all
/// earlier ones until there are `top`.  k - k (k - 1) / 2 s  for s > k, else (s + 1) / 2
double selected_tokens(const Indexer& indexer, std::int64_t seq_len);
/// Forward FLOPs per token of the indexer's scores, 2 I d s / 2, and of the core over the selected
/// tokens in the space of latents, 2 k H (c + r + c), c and r the widths of the latent and of the
/// rotated part.
double index_flops(const Indexer& indexer, std::int64_t seq_len);
double selected_flops(const AttentionPart& attention, std::int64_t seq_len);
/// Is that less than the core over all earlier tokens, with expanded keys and values?
bool selects_faster(const AttentionPart& attention, std::int64_t seq_len);

/// Forward FLOPs per token of a scan and its convolution, without the matrices.
///   Mamba-2   2 c (d + 2 g s) + 2 Q g s + Q d + 4 s d    c taps, Q chunk, d inner, g s both states
///   delta     2 c C + n (Q (6 k + 4 v) + 6 k v)          C convolved, n value heads, k and v
///   widths
/// Source  Dao and Gu 2024, section 6; Yang et al. 2024, section 3.3: products within a chunk, of
///         which causal ones count half, and with the state
std::int64_t scan_flops(const Mamba2Part& mamba);
std::int64_t scan_flops(const DeltaPart& delta);

/// The layers of a model: equal ones share one Layer.
class LayerList {
 public:
  std::int64_t size() const { return static_cast<std::int64_t>(kind_.size()); }
  const Layer& operator[](std::int64_t layer) const {
    return kinds_[kind_[static_cast<std::size_t>(layer)]];
  }
  const Layer& back() const { return (*this)[size() - 1]; }
  /// The different ones, in order of their first layer.
  const std::vector<Layer>& kinds() const { return kinds_; }
  /// Layers that are this kind.
  std::int64_t count(const Layer& kind) const;
  /// Layers for which `holds(layer)`.
  template <class Predicate>
  std::int64_t count_if(Predicate holds) const {
    std::int64_t count = 0;
    for (std::size_t k = 0; k < kinds_.size(); ++k) count += holds(kinds_[k]) ? count_of(k) : 0;
    return count;
  }
  template <class Predicate>
  bool any(Predicate holds) const {
    return count_if(holds) > 0;
  }

  void push_back(const Layer& layer);
  /// The first `count` layers, followed by more like the last one where there are fewer.
  void resize(std::int64_t count);
  /// Changes every kind.
  template <class Change>
  void change(Change change) {
    for (Layer& each : kinds_) change(each);
  }

 private:
  std::int64_t count_of(std::size_t kind) const {
    return std::ranges::count(kind_, static_cast<std::uint16_t>(kind));
  }

  std::vector<Layer> kinds_;
  std::vector<std::uint16_t> kind_;
};

}  // namespace orrery::models
