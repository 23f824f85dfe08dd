#include "models/model/import/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/model/import/irrelevant_keys.hpp"
#include "sim/input/text.hpp"

namespace orrery::models {
namespace {

/// What multimodal files call the object of their decoder. One that also speaks has it in the part
/// that thinks; InternVL's and DeepSeek-VL2's have names of their own.
constexpr std::string_view decoder_keys[] = {"thinker_config", "text_config", "llm_config",
                                             "language_config"};

Node decoder_of(const Node& config) {
  for (const std::string_view key : decoder_keys) {
    const auto nested = config.find(key);
    if (nested && nested->is_object()) return decoder_of(*nested);
  }
  return config;
}

/// The object around the decoder's own: the part that thinks, or else the whole file.
Node around(const Node& config, const Node& decoder) {
  const auto thinker = config.find("thinker_config");
  const bool inside = thinker && thinker->is_object() && thinker->pointer() != decoder.pointer();
  return inside ? *thinker : config;
}

std::string without_suffix(std::string text, std::string_view suffix) {
  if (text.size() > suffix.size() && std::string_view{text}.ends_with(suffix)) {
    text.resize(text.size() - suffix.size());
  }
  return text;
}

constexpr std::string_view own_sizes[] = {"head_dim",
                                          "hidden_size",
                                          "intermediate_size",
                                          "num_hidden_layers",
                                          "num_attention_heads",
                                          "num_key_value_heads",
                                          "max_position_embeddings"};

}  // namespace

Config::Config(const Node& config) : node_{decoder_of(config)} {
  if (node_.pointer() != config.pointer()) above_ = around(config, node_);
  type_ = without_suffix(type_node().as<std::string>(), "_text");
  read_ = {"model_type"};
}

Node Config::type_node() const {
  if (above_ && !node_.has("model_type")) return (*above_)["model_type"];
  return node_["model_type"];
}

std::optional<Node> Config::stated(std::string_view key) const {
  // The class of the whole file ties, or does not, by what the file says outside.
  if (above_ && key == "tie_word_embeddings" && above_->find(key)) return above_->find(key);
  const auto member = node_.find(key);
  // Sizes outside a decoder's own object are of an encoder or a projector.
  if (member || !above_ || std::ranges::find(own_sizes, key) != std::end(own_sizes)) return member;
  return above_->find(key);
}

std::optional<Node> Config::find(std::string_view key) {
  read_.emplace(key);
  if (const auto member = stated(key)) return member;
  const auto is_key = [&](const auto& member) { return member.first == key; };
  if (assumed_.empty() || std::ranges::any_of(node_.members(), is_key)) return std::nullopt;
  for (auto each = assumed_.rbegin(); each != assumed_.rend(); ++each) {
    if (const auto member = (*each)->root().find(key)) return member;
  }
  return std::nullopt;
}

void Config::assume(Json values) {
  assumed_.push_back(std::make_shared<const Document>(
      Document::from(std::move(values), fmt::format("defaults of '{}'", type_))));
}

void Config::assume_class(std::string_view values) {
  assume(Document::parse(std::string{values}, "defaults").json());
  of_class_ = assumed_.size();
}

std::vector<std::string> Config::sizes_of_class() const {
  std::set<std::string, std::less<>> had;  // null included
  for (const auto& [key, value] : node_.members()) had.insert(key);
  std::vector<std::string> sizes;
  for (std::size_t i = assumed_.size(); i-- > 0;) {
    for (const auto& [key, value] : assumed_[i]->root().members()) {
      if (!value.json().is_number_integer() || !read_.contains(key) || stated(key)) continue;
      if (!had.insert(key).second || i >= of_class_) continue;
      sizes.push_back(fmt::format("{}={}", key, value.json().dump()));
    }
  }
  return sizes;
}

std::optional<std::vector<std::size_t>> Config::kinds(
    std::string_view key, std::int64_t layers, std::initializer_list<std::string_view> words) {
  const auto listed = find(key);
  if (!listed) return std::nullopt;
  std::vector<std::size_t> all;
  for (const Node& each : listed->elements()) all.push_back(each.one_of(words));
  if (std::ssize(all) != layers) {
    listed->fail(fmt::format("has {} entries for {} layers", all.size(), layers));
  }
  return all;
}

std::int64_t Config::size(std::string_view key, std::int64_t high) {
  const auto member = find(key);
  return member ? member->integer(1, high) : node_[key].integer(1, high);
}

std::int64_t Config::size(std::initializer_list<std::string_view> keys, std::int64_t high) {
  std::optional<std::int64_t> value;
  for (const std::string_view key : keys) {
    if (!value && stated(key)) value = size(key, high);
    read_.emplace(key);
  }
  for (const std::string_view key : keys) {
    if (!value && find(key)) value = size(key, high);
  }
  return value ? *value : size(*keys.begin(), high);
}

std::int64_t Config::size_or(std::string_view key, std::int64_t high, std::int64_t otherwise) {
  const auto member = find(key);
  return member ? member->integer(0, high) : otherwise;
}

std::int64_t Config::positive_or(std::string_view key, std::int64_t high, std::int64_t otherwise) {
  return find(key) ? size(key, high) : otherwise;
}

bool Config::flag(std::string_view key, bool otherwise) {
  const auto member = find(key);
  return member ? member->as<bool>() : otherwise;
}

Activation Config::activation(std::string_view key, Activation otherwise) {
  const auto member = find(key);
  if (!member) return otherwise;
  const auto word = member->as<std::string>();
  if (word == "xielu" || word == "quick_gelu" || word == "swigluoai") {
    approximated_ = fmt::format("activation '{}'", word);
    return Activation::silu;
  }
  if (word == "relu2") return Activation::relu2;
  if (word == "silu" || word == "swish") return Activation::silu;
  if (word == "relu") return Activation::relu;
  if (word == "gelu" || word == "gelu_python") return Activation::gelu_erf;
  // gelu_new, gelu_fast, gelu_pytorch_tanh: the approximation by a tanh.
  if (word.find("gelu") != std::string::npos) return Activation::gelu;
  member->fail_expected("one of \"gelu\", \"silu\", \"relu\"");
}

void Config::fail(std::string_view key, std::string_view problem) const {
  node_.find(key).value_or(node_).fail(problem);
}

std::vector<std::string> Config::ignored() const {
  std::vector<std::string> keys;
  const auto collect = [&](const Node& object) {
    for (const auto& [key, value] : object.members()) {
      const bool container =
          above_ && std::ranges::find(decoder_keys, key) != std::end(decoder_keys);
      if (!container && !read_.contains(key) && !irrelevant(key)) keys.push_back(key);
    }
  };
  collect(node_);
  if (above_) collect(*above_);
  return keys;
}

std::string Config::meant_by(std::string_view ignored) const {
  std::vector<std::string_view> missing;
  for (const std::string& key : read_) {
    if (!stated(key)) missing.push_back(key);
  }
  return std::string{nearest(ignored, missing)};
}

namespace {

/// Some newer files list the kinds of their layers and do not count them.
std::int64_t read_layer_count(Config& config) {
  const auto listed =
      config.find("num_hidden_layers") ? std::nullopt : config.find("layers_block_type");
  if (!listed) return config.size("num_hidden_layers", Limits::layers);
  const std::int64_t count = std::ssize(listed->elements());
  if (count < 1 || count > Limits::layers) {
    listed->fail(fmt::format("has {} entries; expected 1 to {}", count, Limits::layers));
  }
  return count;
}

std::string first_of_classes(const std::optional<Node>& named) {
  if (!named || named->elements().empty()) return {};
  return named->elements()[0].as<std::string>();
}

}  // namespace

std::string first_class(Config& config) {
  return first_of_classes(config.find("architectures"));
}

std::string first_class(const Node& file) {
  return first_of_classes(file.find("architectures"));
}

void read_shape(Config& config, ModelDraft& model) {
  model.depth = read_layer_count(config);
  model.hidden = config.size("hidden_size", Limits::hidden);
  model.attention.heads = config.size("num_attention_heads", Limits::heads);
  model.attention.kv_heads = config.positive_or("num_key_value_heads", Limits::heads, 0);
  // Latents say how wide heads are; their files may say 0.
  model.attention.head_dim = config.find("qk_nope_head_dim")
                                 ? config.size_or("head_dim", Limits::head_dim, 0)
                                 : config.positive_or("head_dim", Limits::head_dim, 0);
  model.embedding.vocab = config.size("vocab_size", Limits::vocab);
  model.embedding.max_positions = config.size_or("max_position_embeddings", Limits::positions, 0);
  fill_heads(config, model);
}

void fill_heads(const Config& config, ModelDraft& model) {
  if (model.attention.kv_heads == 0) model.attention.kv_heads = model.attention.heads;
  if (model.attention.head_dim == 0) {
    if (model.hidden % model.attention.heads != 0) {
      config.fail("hidden_size", fmt::format("{} is not a multiple of the {} attention heads",
                                             model.hidden, model.attention.heads));
    }
    model.attention.head_dim = model.hidden / model.attention.heads;
  }
  if (model.attention.head_dim > Limits::head_dim) {
    config.fail("hidden_size", fmt::format("the head size {} is above {}", model.attention.head_dim,
                                           Limits::head_dim));
  }
  if (model.attention.heads % model.attention.kv_heads != 0) {
    config.fail("num_key_value_heads",
                fmt::format("{} key-value heads do not divide the {} attention heads",
                            model.attention.kv_heads, model.attention.heads));
  }
}

ModelDraft llama_like(Config& config) {
  ModelDraft model;
  model.family = Family::llama;
  model.norms.kind = Norm::rms_norm;
  model.embedding.positions = Positions::rotary;
  model.mlp.gated = true;
  model.attention.qkv_bias = false;
  model.attention.output_bias = false;
  model.mlp.bias = false;
  read_shape(config, model);
  model.mlp.activation = config.activation("hidden_act", Activation::silu);
  model.embedding.tied = config.flag("tie_word_embeddings", false);
  return model;
}

void read_expert_counts(Config& config, ModelDraft& model,
                        std::initializer_list<std::string_view> keys) {
  model.experts.count = config.size(keys, Limits::experts);
  model.experts.per_token = config.size("num_experts_per_tok", Limits::experts);
  if (model.experts.per_token > model.experts.count) {
    config.fail("num_experts_per_tok", fmt::format("{} is more than the {} experts",
                                                   model.experts.per_token, model.experts.count));
  }
}

std::optional<std::vector<bool>> read_full_attention(Config& config, const ModelDraft& model,
                                                     std::string_view narrow) {
  const auto listed = config.find("layer_types");
  if (!listed) return std::nullopt;
  std::vector<bool> full;
  for (const Node& type : listed->elements()) {
    full.push_back(type.one_of({"full_attention", narrow}) == 0);
  }
  if (std::ssize(full) != model.depth) {
    listed->fail(fmt::format("has {} entries for {} layers", full.size(), model.depth));
  }
  return full;
}

ModelDraft with_optional_window(Config& config, ModelDraft model) {
  constexpr std::int64_t usual_first = 28;  // the transformers library's default
  const std::int64_t window = config.size_or("sliding_window", Limits::positions, 0);
  const std::int64_t first = config.size_or("max_window_layers", Limits::layers, usual_first);
  const auto listed = read_full_attention(config, model, "sliding_attention");
  if (!config.flag("use_sliding_window", false) || window == 0) return model;
  model.attention.window = window;
  if (listed) {
    model.full = *listed;
  } else if (first > 0) {
    for (std::int64_t i = 0; i < model.depth; ++i) model.full.push_back(i < first);
  }
  return model;
}

}  // namespace orrery::models
