#pragma once
// Makes the kinds of layers of a model with their blocks, and the units by which their parameters
// are reduced, gathered and sharded.

#include "models/lowering/lower.hpp"

namespace orrery::models {

/// Do experts have other replicas than the rest of their layer?
bool experts_apart(const Mesh& mesh);

/// Adds blocks and kinds: embedding, head, and the layers, which share a kind if they differ only
/// in their weights.
void add_kinds(Program& program, const BlockInputs& inputs);

/// Adds units: embedding, each layer, head, in model order, but embedding and head as one unit, the
/// first, where a table that they share is gathered; then experts with replicas of their own.
void add_units(Program& program, const Plan& plan);

}  // namespace orrery::models
