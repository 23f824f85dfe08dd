#pragma once
// The vocabulary's table, which embedding and head may share.

#include <string_view>

#include "models/operations/builder.hpp"
#include "models/operations/layouts.hpp"

namespace orrery::models {

/// What labels are called where a model fills in masked tokens; those of others are -1.
inline constexpr std::string_view masked_labels = "masked_labels";

/// [V, e]
inline ModelTensor embedding_table(const Model& model) {
  return {.name = "embedding.weight",
          .uncut = {1, model.vocab, embedding_width(model)},
          .sharding = by_rows(vocabulary_unit),
          .initial = {.deviation = model.initial_deviation}};
}

}  // namespace orrery::models
