#pragma once
// Peak memory of each stage: the Program's buffers, and what no Program lists: CUDA context,
// library workspaces, fragmentation.

#include "models/prediction/prediction.hpp"

namespace orrery::models {

/// Fills `memory`, `fullest`, `out_of_memory`, `fit` and the evidence for it.
void add_memory(const Question& question, Prediction& prediction);
/// peaks  of the Program, by rank class
void add_memory(const Question& question, const std::vector<MemoryPeak>& peaks,
                Prediction& prediction);

/// "rank 3 needs 90.0 GiB, available: 80.0 GiB"; "what is offloaded needs host memory of ...".
std::string words_of(const OutOfMemory& found);

}  // namespace orrery::models
