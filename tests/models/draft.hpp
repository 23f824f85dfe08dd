#pragma once
// Models of tests: a model with something changed.

#include "models/model/counts.hpp"
#include "models/model/model.hpp"

namespace orrery::models {

/// The fields that make a model of one attention, one MLP or mixture of experts again.
inline ModelDraft draft_of(const Model& model) {
  ModelDraft draft{model};
  draft.layers = {};
  draft.formula = {};
  const std::int64_t before = model.encoder ? model.encoder->layers : 0;
  draft.depth = model.layers.size() - before;
  draft.attention = usual_attention(model);
  draft.attention.encodes = false;
  draft.experts = usual_experts(model);
  draft.mlp = usual_mlp(model);
  for (std::int64_t i = 0; i < draft.depth; ++i) {
    const Layer& layer = model.layers[before + i];
    draft.full.push_back(layer.attention() != nullptr && layer.attention()->full());
    draft.dense.push_back(layer.experts() == nullptr);
    if (layer.experts() == nullptr) draft.dense_width = layer.mlp()->width;
  }
  if (model.encoder) draft.encoder_width = model.layers[0].mlp()->width;
  const bool whole = draft.attention.full() && model.layers.kinds().size() > 1;
  for (const Layer& kind : model.layers.kinds()) {
    if (whole && kind.attention() != nullptr && !kind.attention()->full()) {
      draft.attention = *kind.attention();
    }
  }
  if (draft.attention.full()) draft.full = {};
  if (draft.experts.count == 0) draft.dense = {};
  return draft;
}

template <class Change>
Model changed(const Model& model, Change change) {
  ModelDraft draft = draft_of(model);
  change(draft);
  return built(std::move(draft));
}

}  // namespace orrery::models
