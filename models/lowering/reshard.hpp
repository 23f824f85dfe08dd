#pragma once
// Resharding: the collectives inside a block follow from the layouts that its operations state. An
// operand is held in one layout (Operand::sharding); an operation may need or make it in another
// (Operation::needs, makes). The collective between two layouts is, axis by axis,
//   partial sum -> whole            all-reduce
//   partial sum -> cut              reduce-scatter
//   cut         -> whole            all-gather
//   cut         -> another cut      all-to-all
// on the communicator and the lane of that axis. A parallel strategy that cuts activations only
// states layouts.

#include <span>

#include "models/program/block.hpp"
#include "models/program/mesh.hpp"
#include "models/software/software.hpp"

namespace orrery::models {

/// What resharding depends on.
struct Resharding {
  const Mesh& mesh;
  std::span<const Communicator> communicators;
  /// Does the weight gradient wait until the input gradient has been reduced?
  bool serial = false;
  /// Whether inputs gathered in forward are kept for backward or gathered again.
  Gathered gathered = Gathered::in_backward;
};

/// Inserts the collectives, and empties `needs` and `makes`: afterwards every operation reads and
/// writes operands in the layout in which they are held.
/// Errors  whole -> cut and anything -> partial sum, which no collective makes, or an axis without
///         a communicator: ContractError
void reshard(Block& block, const Resharding& how);

}  // namespace orrery::models
