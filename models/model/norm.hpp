#pragma once
// Kinds of normalisation layers.

#include <cstdint>

namespace orrery::models {

enum class Norm : std::uint8_t { layer_norm, rms_norm };

}  // namespace orrery::models
