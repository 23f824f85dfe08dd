#pragma once
// Evaluates only the time of a step: no checks of the Program, no memory, no breakdown. Enough for
// fits and scores that evaluate thousands of steps. Collectives are priced statically.

#include "models/prediction/prediction.hpp"

namespace orrery::scenarios {

struct StepAlone {
  double seconds = 0;
  int fallback_curves = 0;  // kernel curves of another GPU that the prices rest on
};

StepAlone step_of(const models::Program& program, const hardware::Cluster& cluster,
                  const models::Software& software);
/// Errors  a plan with a conflict: InputError
StepAlone step_of(const models::Question& question);

}  // namespace orrery::scenarios
