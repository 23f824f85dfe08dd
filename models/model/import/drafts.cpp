#include "models/model/import/drafts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "models/model/import/families.hpp"

namespace orrery::models {

Model inside_multimodal(Config& config, Model model) {
  const bool whole = config.find("vision_config") || config.find("audio_config");
  return whole ? model : without_head(std::move(model));
}

Model without_prediction(Config& config, Model model, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const std::int64_t layers = config.size_or(key, Limits::layers, 0);
    if (layers == 0) continue;
    model.assumptions.push_back(
        fmt::format("/{}: {} layers that predict further tokens are neither counted nor simulated",
                    key, layers));
  }
  return model;
}

void also_called(Config& config, const char* key, std::initializer_list<const char*> synonyms) {
  for (const char* synonym : synonyms) {
    const auto stated = config.find(synonym);
    if (!stated) continue;
    if (config.states(key) && config.find(key)->json() != stated->json()) {
      stated->fail(fmt::format("differs from {}, which says the same", key));
    }
    config.assume({{key, stated->json()}});
  }
}

void heed(Config& config, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) config.find(key);
}

void refuse_true(Config& config, std::initializer_list<std::string_view> keys,
                 std::string_view problem) {
  for (const std::string_view key : keys) {
    if (config.flag(key, false)) config.fail(key, problem);
  }
}

void refuse_biases(Config& config, std::initializer_list<std::string_view> keys) {
  refuse_true(config, keys, "biases are not supported for this type; expected false");
}

void assume_head_dim(Config& config) {
  if (config.find("head_dim")) return;
  config.assume({{"head_dim", config.size("hidden_size", Limits::hidden) /
                                  config.size("num_attention_heads", Limits::heads)}});
}

std::int64_t layers_with_experts(const ModelDraft& model) {
  return model.depth - std::ranges::count(model.dense, true);
}

std::optional<Node> of_layer(Config& config, std::int64_t layer) {
  const auto listed = config.find("per_layer_config");
  if (!listed) return std::nullopt;
  const auto padded = listed->find(fmt::format("{:02}", layer));
  return padded ? padded : listed->find(std::to_string(layer));
}

std::vector<bool> every_nth_from_first(std::int64_t layers, std::int64_t n) {
  std::vector<bool> chosen;
  for (std::int64_t i = 0; i < layers; ++i) chosen.push_back(i % n == 0);
  return chosen;
}

void vary_layers(ModelDraft& model, const std::function<void(std::int64_t, Layer&)>& vary) {
  const LayerList usual = built(ModelDraft{model}).layers;
  for (std::int64_t i = 0; i < usual.size(); ++i) {
    Layer layer = usual[i];
    vary(i, layer);
    model.layers.push_back(layer);
  }
}

}  // namespace orrery::models
