#pragma once
// The Program's peak with what no Program shows: context, library workspaces, fragmentation.

#include "models/prediction/prediction.hpp"

namespace orrery::models {

/// Fills `memory`, `fullest` and `out_of_memory`.
void add_memory(const Question& question, Prediction& prediction);

}  // namespace orrery::models
