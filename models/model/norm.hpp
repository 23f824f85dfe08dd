#pragma once
// Kinds of normalisation layers.

#include <cstdint>

#include "sim/words.hpp"

namespace orrery::models {

enum class Norm : std::uint8_t { layer_norm, rms_norm };
inline constexpr Words<Norm, 2> norm_words{
    {{Norm::layer_norm, "layer_norm"}, {Norm::rms_norm, "rms_norm"}}};

}  // namespace orrery::models
