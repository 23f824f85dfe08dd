#pragma once
// Kernels that run concurrently with communication take longer: both use the GPU's multiprocessors
// and memory. By how much, a calibration measures (hardware/curves/calibration.hpp). Leaves out
// transfers between stages, and that collectives take longer next to kernels.

#include "models/evaluation/priced.hpp"

namespace orrery::models {

/// The slowdown applies to what overlaps: the shorter of the two.
///   t' = t + (slowdown - 1) min(t, o)
/// t  kernels; o  communication that runs concurrently with them:
///    in a block, the hidden parts of its tensor-parallel collectives;
///    in backward, gradient reductions that more backward follows;
///    in forward, parameter gathers that the step before has left
/// Blocks are priced once for all micro-batches and stages, so the last two, of a whole step, are
/// spread over all backward or forward kernels.
/// slowdown  measured time of a kernel next to a collective over that alone
void slow_beside_communication(PricedProgram& priced, double slowdown);

/// Makes the kernels of a block longer by `more` in all.
void lengthen_kernels(const Block& block, Time more, std::vector<PricedOperation>& prices);

}  // namespace orrery::models
