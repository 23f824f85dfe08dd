#pragma once
// Resharding: the collectives inside a block follow from the layouts that its operations state. An
// operand is held in one layout (Operand::sharding); an operation may need or make it in another
// (Operation::needs, makes). Between the two stands, axis by axis,
//   partial sum -> whole            all-reduce
//   partial sum -> cut              reduce-scatter
//   cut         -> whole            all-gather
//   cut         -> another cut      all-to-all
// on the communicator and the lane of that axis. A strategy that cuts activations states layouts.

#include <span>

#include "models/program/block.hpp"
#include "models/program/mesh.hpp"
#include "models/software/software.hpp"

namespace orrery::models {

struct Resharding {
  const Mesh& mesh;
  std::span<const Communicator> communicators;
  /// Does a weight's gradient wait until the input's gradient is summed?
  bool serial = false;
  /// What is gathered forward for backward's use: kept, or gathered again.
  Gathered gathered = Gathered::again;
};

/// Rewrites the block so that every operation reads and writes operands as they are held.
/// Errors  whole -> cut and anything -> partial sum, which no collective makes, or an axis without
///         a communicator: ContractError
void reshard(Block& block, const Resharding& how);

}  // namespace orrery::models
