#pragma once
// Blocks of a model that is given as a list of operations (models/model/operation_list.hpp). Each
// operation passes its order on as an operand of one byte; what backward reads of forward is an
// operand of as many bytes as are saved.

#include <optional>
#include <vector>

#include "models/model/operation_list.hpp"
#include "models/operations/blocks.hpp"
#include "models/program/program.hpp"

namespace orrery::models {

/// What decides about the sizes of one rank of a list.
ListedSizes listed_sizes(const BlockInputs& inputs);

/// Ranks of a list: all of them replicas; where a group of fewer ranks communicates, that is the
/// context axis.
Mesh listed_mesh(const BlockInputs& inputs);

BlockPair listed_blocks(const BlockInputs& inputs, const ListedPart& part);
/// Embedding and head, which a list does not have: no operations.
BlockPair empty_end(const char* name);

/// The optimizer's pass over the `elements` that this rank updates, as the list's update states it.
/// nullopt: it states none.
std::optional<Block> listed_update_block(const BlockInputs& inputs, std::int64_t elements);

/// What runs ahead of the step or after it, of one rank and step.
std::vector<AheadWork> ahead_of(const BlockInputs& inputs);

}  // namespace orrery::models
