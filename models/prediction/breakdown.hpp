#pragma once
// Breakdown of one rank's step: each picosecond of its compute queue, from 0 to the end of the
// step, is attributed to the kernel that ran or to what the queue waited for.

#include "models/evaluation/step_times.hpp"
#include "models/prediction/prediction.hpp"

namespace orrery::models {

/// Kernels count as their own class. A gap counts as what ended it: the host, a tensor collective,
/// a transfer (pp, while it moved; bubble, while its sender computed), gradient traffic (dp), other
/// collectives, and bubble for other ranks' lateness. What a full NIC adds to the step (its bound)
/// counts as the class that sends most over it.
Breakdown breakdown_of(const PricedProgram& priced, const StepTimes& times,
                       std::uint32_t rank_class);

}  // namespace orrery::models
