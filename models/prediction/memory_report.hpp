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

/// Time of a step for what a paged optimizer keeps on the host: into the GPU before the update, and
/// out of it when the next step's activations need the room, over the host_link. `memory` is
/// filled. Source  Dettmers et al. 2023, "QLoRA", arXiv 2305.14314, section 3: paged optimizers;
///         bitsandbytes, optim/optimizer.py: a paged optimizer prefetches its state in each step
Time paging_time(const Question& question, const Prediction& prediction);

/// "rank 3 needs 90.0 GiB, available: 80.0 GiB"; "what is offloaded needs host memory of ...".
std::string words_of(const OutOfMemory& found);

}  // namespace orrery::models
