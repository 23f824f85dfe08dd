#pragma once
// What a multimodal file has besides the model of text that is read from it: its encoder of images
// and what leads from there to the text, counted by the classes of the transformers library. Leaves
// out encoders of sound, and families that are not listed in whole_model.cpp.

#include <cstdint>
#include <optional>

#include "models/model/model.hpp"

namespace orrery::models {

/// Counts of a file that nests an encoder of images or sound.
struct WholeModel {
  /// With the encoder of images, projector and head; nullopt: of a family that is not known.
  std::optional<std::int64_t> parameters;
};

/// nullopt: the file is of a model of one kind, and `model` all of it.
/// model   as read from the file
/// Errors  sizes of the encoder that are out of range
std::optional<WholeModel> whole_model(const Node& config, const Model& model);

}  // namespace orrery::models
