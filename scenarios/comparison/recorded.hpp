#pragma once
// Compares the step that an executed run recorded with its prediction.

#include "models/prediction/prediction.hpp"
#include "scenarios/comparison/comparison.hpp"

namespace orrery::scenarios {

/// Joined by operation; with CUDA graphs, whose kernels have no times of their own, by instruction.
Comparison compare_recorded(const models::Question& question, const models::Prediction& prediction,
                            const Trace& recorded);

}  // namespace orrery::scenarios
