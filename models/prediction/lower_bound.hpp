#pragma once
// The step of a question if no transfer shared a link with anything.

#include "models/prediction/prediction.hpp"

namespace orrery::models {

/// No step with traffic on links is shorter than it.
/// Errors  as estimate
Time step_without_sharing(const Question& question);

}  // namespace orrery::models
