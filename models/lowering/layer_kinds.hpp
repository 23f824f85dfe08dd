#pragma once
// The kinds of layers of a model with their blocks, and the units that they are sharded by.

#include "models/lowering/lower.hpp"

namespace orrery::models {

/// Have experts other replicas than the rest of their layer?
bool experts_apart(const Mesh& mesh);

/// Blocks and kinds: embedding, head and the layers, which share a kind where they differ in
/// nothing but their weights.
void add_kinds(Program& program, const BlockInputs& inputs);

/// Layers one by one between embedding and head; these two as one where a table that they share is
/// gathered.
void add_units(Program& program, const Plan& plan);

}  // namespace orrery::models
