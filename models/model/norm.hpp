#pragma once

#include <cstdint>

namespace orrery::models {

enum class Norm : std::uint8_t { layer_norm, rms_norm };

}  // namespace orrery::models
