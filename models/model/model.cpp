#include "models/model/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/model/counts.hpp"
#include "models/model/operation_list.hpp"

namespace orrery::models {

namespace {

/// The first layer's part that `part_of` finds, or `otherwise`.
template <class Part, class Find>
const Part& first_part(const Model& model, const Part& otherwise, Find part_of) {
  for (const Layer& kind : model.layers.kinds()) {
    if (const Part* const found = part_of(kind)) return *found;
  }
  return otherwise;
}

}  // namespace

std::string_view unit_word(const Model& model) {
  if (!model.list) return "tokens";
  return model.list->trains() ? "samples" : "steps";
}

std::int64_t source_length(const Model& model) {
  return model.encoder ? model.encoder->seq_len : 0;
}

bool crosses(const Model& model) {
  return model.layers.any([](const Layer& layer) { return layer.cross.has_value(); });
}

const AttentionPart& usual_attention(const Model& model) {
  static const AttentionPart none{};
  return first_part(model, none, [](const Layer& layer) { return layer.attention(); });
}

const ExpertsPart& usual_experts(const Model& model) {
  static const ExpertsPart none{};
  return first_part(model, none, [](const Layer& layer) { return layer.experts(); });
}

const MlpPart& usual_mlp(const Model& model) {
  static const MlpPart none{};
  if (const ExpertsPart& experts = usual_experts(model); experts.count > 0) return experts.mlp;
  return first_part(model, none, [](const Layer& layer) { return layer.mlp(); });
}

std::int64_t longest_chunk(const Model& model) {
  std::int64_t longest = 0;
  for (const Layer& kind : model.layers.kinds()) {
    if (kind.attention() != nullptr) longest = std::max(longest, kind.attention()->chunk);
  }
  return longest;
}

std::vector<Layer> prediction_module(const Model& model) {
  if (model.prediction_module.empty()) return {model.layers.back()};
  return model.prediction_module;
}

std::int64_t expert_layers(const Model& model) {
  return model.layers.count_if([](const Layer& layer) { return layer.experts() != nullptr; });
}

std::vector<bool> every_nth(std::int64_t layers, std::int64_t n) {
  std::vector<bool> chosen;
  for (std::int64_t layer = 1; n > 0 && layer <= layers; ++layer) chosen.push_back(layer % n == 0);
  return chosen;
}

std::vector<bool> dense_layers(std::int64_t layers, std::int64_t first, std::int64_t every) {
  std::vector<bool> dense;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    dense.push_back(layer < first || (layer + 1) % every != 0);
  }
  return dense;
}

namespace {

bool is_set(const std::vector<bool>& flags, std::int64_t layer) {
  const auto index = static_cast<std::size_t>(layer);
  return index < flags.size() && flags[index];
}

Layer layer_of(const ModelDraft& draft, std::int64_t layer) {
  AttentionPart attention = draft.attention;
  if (is_set(draft.full, layer)) {
    attention.window = attention.chunk = 0;
    attention.rotary_base.reset();
  }
  MlpPart mlp = draft.mlp;
  if (draft.experts.count == 0) return {attention, mlp};
  if (is_set(draft.dense, layer)) {
    mlp.width = draft.dense_width;
    return {attention, mlp};
  }
  ExpertsPart experts = draft.experts;
  experts.mlp = mlp;
  return {attention, experts};
}

/// An encoder's layers before the decoder's `depth`, each of which attends to them.
void add_both_sides(ModelDraft& draft) {
  Layer encodes = layer_of(draft, 0);
  std::get<AttentionPart>(encodes.mixer).encodes = true;
  auto* const mlp = std::get_if<MlpPart>(&encodes.channel);
  if (mlp != nullptr && draft.encoder_width > 0) mlp->width = draft.encoder_width;
  for (std::int64_t i = 0; i < draft.encoder->layers; ++i) draft.layers.push_back(encodes);
  for (std::int64_t i = 0; i < draft.depth; ++i) {
    Layer decodes = layer_of(draft, i);
    decodes.cross = cross_of(draft.attention);
    draft.layers.push_back(decodes);
  }
}

}  // namespace

Model built(ModelDraft draft) {
  if (draft.layers.size() == 0 && draft.encoder) add_both_sides(draft);
  if (draft.layers.size() == 0) {
    for (std::int64_t i = 0; i < draft.depth; ++i) draft.layers.push_back(layer_of(draft, i));
  }
  draft.head.activation = draft.mlp.activation;
  draft.parameters = count_parameters(draft);
  draft.active_parameters = count_active_parameters(draft);
  if (draft.formula.empty()) draft.formula = parameter_formula(draft);
  return std::move(static_cast<Model&>(draft));
}

std::string text_of(const Model& model) {
  const AttentionPart& attention = usual_attention(model);
  const MlpPart& mlp = usual_mlp(model);
  return fmt::format(
      "model {} layers={} hidden={} heads={} kv_heads={} head_dim={} ffn={} vocab={} positions={} "
      "parameters={} norm={} position={} activation={}{}{}{}{}\n",
      model.name, model.layers.size(), model.hidden, attention.heads, attention.kv_heads,
      attention.head_dim, mlp.width, model.embedding.vocab, model.embedding.max_positions,
      model.parameters, word_of(norm_words, model.norms.kind),
      word_of(position_words, model.embedding.positions), name(mlp.activation),
      mlp.gated ? " gated" : "", model.embedding.tied ? " tied" : "",
      model.front ? fmt::format(" images={} patches={} merged={}", model.front->images,
                                model.front->patches, model.front->merged)
                  : "",
      model.encoder
          ? fmt::format(" encoder={} source={}", model.encoder->layers, model.encoder->seq_len)
          : "");
}

}  // namespace orrery::models
