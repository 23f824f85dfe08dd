#pragma once
// Peak memory of each stage: the Program's buffers, and what no Program lists: CUDA context,
// library workspaces, fragmentation.

#include "models/prediction/prediction.hpp"

namespace orrery::models {

/// Fills `memory`, `fullest`, `out_of_memory`, `fit` and the evidence for it.
void add_memory(const Question& question, Prediction& prediction);

}  // namespace orrery::models
