#pragma once
// Models drawn at random from every part that there is.

#include <cstdint>

#include "models/model/model.hpp"

namespace orrery::models {

/// Four layers of width 64, each with parts of any kind; sometimes an encoder of images before
/// them, or layers that predict further tokens behind them. The same seed, the same model.
Model random_model(std::uint64_t seed);

}  // namespace orrery::models
