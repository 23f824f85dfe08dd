#pragma once
// The embedding table of the vocabulary, which embedding and head may share, and the name of masked
// labels.

#include <string_view>

#include "models/operations/builder.hpp"
#include "models/operations/layouts.hpp"

namespace orrery::models {

/// Operand name of the labels of a masked language model; the label of an unmasked token is -1.
inline constexpr std::string_view masked_labels = "masked_labels";

/// [V, e], cut by rows of the vocabulary.
inline ModelTensor embedding_table(const Model& model) {
  return {.name = "embedding.weight",
          .uncut = {1, model.embedding.vocab, embedding_width(model)},
          .sharding = by_rows(vocabulary_unit),
          .initial = {.deviation = model.initial_deviation}};
}

}  // namespace orrery::models
