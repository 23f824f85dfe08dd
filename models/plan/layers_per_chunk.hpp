#pragma once
// How many layers each chunk of the pipeline has. Which stage holds a chunk is decided by the
// schedule (models/schedules/schedule.hpp).

#include <cstdint>
#include <vector>

#include "models/model/model.hpp"
#include "models/plan/plan.hpp"

namespace orrery::models {

/// Layers of each chunk, in model order: `stage_layers` where given, otherwise as even as possible.
/// The remainder goes one layer each to chunks 1, 2, ... in model order, and to chunk 0 only after
/// all chunks between first and last have one, because first and last also hold embedding and head.
/// With `embedding_counts`, embedding and head count as a layer each: 126 layers on 16 chunks are
/// 7, 8 x 14, 7.
std::vector<std::int64_t> layers_per_chunk(const Plan& plan, const Model& model);

}  // namespace orrery::models
