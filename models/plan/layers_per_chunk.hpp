#pragma once
// How many layers each chunk of the pipeline has.

#include <cstdint>
#include <vector>

#include "models/model/model.hpp"
#include "models/plan/plan.hpp"

namespace orrery::models {

/// Layers on each chunk in model order (stage of chunk c is c mod pipeline): `stage_layers` where
/// given, otherwise as even as possible. What remains of an uneven division goes one layer each to
/// chunks 1, 2, ... in model order, and to chunk 0 only when all between first and last have one:
/// first and last also hold embedding and head. With `embedding_counts`, those two take a layer's
/// slot each: 126 layers on 16 chunks are 7, 8 x 14, 7.
std::vector<std::int64_t> layers_per_chunk(const Plan& plan, const Model& model);

}  // namespace orrery::models
