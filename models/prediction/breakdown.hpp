#pragma once
// Where one rank's step went: its compute queue from 0 to the end of the step, every picosecond
// given to what ran or to what was waited for.

#include "models/evaluation/step_times.hpp"
#include "models/prediction/prediction.hpp"

namespace orrery::models {

/// Kernels count where they ran. A gap counts for what ended it: the host, a tensor collective,
/// a transfer (pp, while it moved; bubble, while its sender computed), gradient traffic (dp), other
/// collectives, and bubble for other ranks' lateness. What a full NIC adds to the step (its bound)
/// counts for what sends most over it.
Breakdown breakdown_of(const PricedProgram& priced, const StepTimes& times,
                       std::uint32_t rank_class);

}  // namespace orrery::models
