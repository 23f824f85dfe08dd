#pragma once
// The vocabulary's table, which embedding and head may share.

#include "models/operations/builder.hpp"
#include "models/operations/layouts.hpp"

namespace orrery::models {

/// [V, e]
inline ModelTensor embedding_table(const Model& model) {
  return {.name = "embedding.weight",
          .uncut = {1, model.vocab, embedding_width(model)},
          .sharding = by_rows(vocabulary_unit),
          .initial = {.deviation = model.initial_deviation}};
}

}  // namespace orrery::models
