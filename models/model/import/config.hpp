#pragma once
// Reads a Hugging Face config.json: typed access by key, limits that keep every count within 64
// bits, and a record of the keys that no reader asked for. Multimodal files nest the decoder in
// `text_config`; keys missing there are looked up in the enclosing object.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/model/model.hpp"
#include "sim/input/document.hpp"

namespace orrery::models {

/// Largest sizes accepted: 3 * hidden * expert_hidden * experts * layers < 2^63.
struct Limits {
  static constexpr std::int64_t layers = 1 << 12;
  static constexpr std::int64_t hidden = 1 << 18;
  static constexpr std::int64_t heads = 1 << 14;
  static constexpr std::int64_t head_dim = 1 << 12;
  static constexpr std::int64_t ffn_hidden = 1 << 20;
  static constexpr std::int64_t expert_hidden = 1 << 18;
  static constexpr std::int64_t experts = 1 << 12;
  static constexpr std::int64_t vocab = 1 << 24;
  static constexpr std::int64_t positions = 1 << 30;
  static constexpr std::int64_t token_types = 1 << 16;
};

/// A config.json and which of its keys were read.
class Config {
 public:
  explicit Config(const Node& config);

  /// `model_type` (of the nested decoder where there is one), without the suffix `_text`.
  const std::string& type() const { return type_; }
  Node type_node() const;

  /// A required integer from 1 to `high`.
  std::int64_t size(std::string_view key, std::int64_t high);
  /// The first of several synonyms that is present; if none is, an error about the first one.
  std::int64_t size(std::initializer_list<std::string_view> keys, std::int64_t high);
  /// An integer from 0 to `high`; `otherwise` when absent or null.
  std::int64_t size_or(std::string_view key, std::int64_t high, std::int64_t otherwise);
  /// An integer from 1 to `high`; `otherwise` when absent or null.
  std::int64_t positive_or(std::string_view key, std::int64_t high, std::int64_t otherwise);
  bool flag(std::string_view key, bool otherwise);
  Activation activation(std::string_view key, Activation otherwise);
  std::optional<Node> find(std::string_view key);
  /// A list of one of `words` for each of `layers` layers, as indices into `words`; nullopt without
  /// it. Errors: another word, not one for each layer.
  std::optional<std::vector<std::size_t>> kinds(std::string_view key, std::int64_t layers,
                                                std::initializer_list<std::string_view> words);

  /// Values for keys that the file does not have, before those of earlier calls; `key: null` is
  /// had.
  void assume(Json values);
  /// The same for what the model's class assumes; sizes among it become assumptions
  /// (sizes_of_class).
  void assume_class(std::string_view values);
  /// Is the decoder's object inside another, as in a multimodal file?
  bool nested() const { return above_.has_value(); }
  /// Whole numbers that the file leaves to the model's class: "hidden_size=4096".
  std::vector<std::string> sizes_of_class() const;
  /// What `activation` had to take for something else; empty: nothing.
  const std::string& approximated() const { return approximated_; }

  /// Has the file the key itself, not its class?
  bool states(std::string_view key) const { return stated(key).has_value(); }

  /// Refuses the whole file at a key: `file:/key: PROBLEM`.
  [[noreturn]] void fail(std::string_view key, std::string_view problem) const;

  /// Keys that were not read and are not known to be irrelevant (irrelevant_keys.hpp), in file
  /// order.
  std::vector<std::string> ignored() const;
  /// The key that was asked for in vain and differs from `ignored` by a slip; empty: none.
  std::string meant_by(std::string_view ignored) const;

 private:
  /// In the file, without assumed values.
  std::optional<Node> stated(std::string_view key) const;

  Node node_;
  std::optional<Node> above_;
  std::vector<std::shared_ptr<const Document>> assumed_;
  std::size_t of_class_ = 0;  // as many of them, the first, are of the class
  std::string approximated_;
  std::string type_;
  std::set<std::string, std::less<>> read_;
};

/// The name of the class that a file names first; empty without one.
std::string first_class(Config& config);
std::string first_class(const Node& file);

/// Reads num_hidden_layers, hidden_size, num_attention_heads, num_key_value_heads, head_dim,
/// vocab_size and max_position_embeddings, the names that most families use; then fill_heads.
void read_shape(Config& config, ModelDraft& model);

/// Defaults for absent keys: as many key-value heads as heads, head_dim = hidden / heads. Errors:
/// hidden no multiple of heads, heads no multiple of kv_heads.
void fill_heads(const Config& config, ModelDraft& model);

/// A model with the norm, positions, biases and MLP of LLaMA; callers change what differs.
ModelDraft llama_like(Config& config);

/// The same with a gated MLP of `intermediate_size` and the biases that the file states.
ModelDraft llama_with_biases(Config& config);

/// Reads the window, and which layers are without it: those of `layer_types`, or else `usual`.
void read_window(Config& config, ModelDraft& model, const std::vector<bool>& usual);

/// Norms with one weight for each column of all queries and all keys, in place of one head's.
void norm_all_heads(ModelDraft& model);

/// Adds to what a model of the config would compute differently.
void also_inexact(Model& model, const std::string& what);

/// Reads latent attention (MLA): in a head's key the part that is not rotated, and the rotated one.
void read_latents(Config& config, AttentionPart& attention);

/// The multipliers of Granite's models, which no GEMM shows.
void read_multipliers(Config& config, Model& model);

/// The layers of a Qwen model that are without experts: all but every `decoder_sparse_step`-th, and
/// those listed.
std::vector<bool> layers_without_experts(Config& config, const ModelDraft& model);

/// Reads the experts of a layer at the first of `keys` that is present, and those that a token is
/// sent to at `num_experts_per_tok`. Errors: more per token than there are.
void read_expert_counts(Config& config, ModelDraft& model,
                        std::initializer_list<std::string_view> keys);

/// Reads how a router of DeepSeek's kind scores and chooses experts: softmax or sigmoid, groups, a
/// bias, a scale (deepseek.cpp). Errors: groups that do not divide the experts, or too few kept.
void read_routing(Config& config, ModelDraft& model);

/// What Gemma's models compute differently from LLaMA: norms of 1 + weight, embeddings times the
/// root of the width, scores over the root of `query_pre_attn_scalar`; softcaps are inexact
/// (gemma.cpp).
void read_gemma_numerics(Config& config, ModelDraft& model);

/// ModelDraft::full by `layer_types`, whose layers are "full_attention" or `narrow`; nullopt
/// without that list. Errors: another type, not one for each layer.
std::optional<std::vector<bool>> read_full_attention(Config& config, const ModelDraft& model,
                                                     std::string_view narrow);

/// Reads the window of Qwen's models, which counts only if `use_sliding_window` is set: layers from
/// `max_window_layers` on have it, if `layer_types` does not say otherwise.
ModelDraft with_optional_window(Config& config, ModelDraft model);

/// Gated delta rules by the keys of Qwen3-Next (hybrid.cpp).
DeltaPart read_delta(Config& config);

}  // namespace orrery::models
