#pragma once
// What offloading keeps in the memory of a node's host, or on its drives, which the node's ranks
// share. Left out: the data loader, the operating system, and copies that a framework makes while
// it loads a checkpoint.

#include <optional>
#include <vector>

#include "models/prediction/prediction.hpp"

namespace orrery::models {

/// Bytes that one rank of a class keeps outside its GPU.
///   state   p (w + m + g + a) + frozen / shards
/// p       trained parameters that the rank updates; w, m, g, a: bytes for each of its master
///         weight, moments, arrived gradient and updated 16-bit weight
/// Activations of offloaded layers come on top, of all micro-batches in flight.
/// Source  w to a: 18 bytes for fp32 state and gradients, as DeepSpeed's
///         estimate_zero3_model_states_mem_needs counts (deepspeed/runtime/zero/stage3.py)
Bytes kept_outside(const Question& question, const Program& program, const RankClass& ranks);

/// The node's host memory, or drives, where its ranks keep more there than it has. Nothing where
/// the plan offloads nothing or the size is not stated.
/// memory  by rank class: what a paged optimizer keeps there
std::optional<OutOfMemory> host_shortage(const Question& question, const Program& program,
                                         const std::vector<StageMemory>& memory);

/// The assumption to report where a plan offloads and the host's size is not stated; else empty.
std::string host_note(const Question& question);
/// The same for the rate of Adam on the host, where another machine's is taken.
std::string host_adam_note(const Question& question);

}  // namespace orrery::models
