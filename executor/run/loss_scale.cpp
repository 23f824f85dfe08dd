#include "executor/run/loss_scale.hpp"

#include <algorithm>
#include <cmath>

namespace orrery::executor {

bool LossScale::accept(double norm) {
  if (!std::isfinite(norm)) {
    const bool halves = dynamic_ && state_.value > 1;
    if (halves) state_.value = std::max(state_.value / 2, 1.0);
    unfixable_ = halves ? 0 : unfixable_ + 1;
    state_.good = 0;
    ++state_.skipped;
    return false;
  }
  unfixable_ = 0;
  if (dynamic_ && ++state_.good == updates_until_growth) {
    state_.value *= 2;
    state_.good = 0;
  }
  return true;
}

}  // namespace orrery::executor
