#include "executor/loss_scale.hpp"

#include <algorithm>
#include <cmath>

namespace orrery::executor {

bool LossScale::accept(double norm) {
  if (!moves_) return true;
  if (!std::isfinite(norm)) {
    state_.value = std::max(state_.value / 2, 1.0);
    state_.good = 0;
    ++state_.skipped;
    return false;
  }
  if (++state_.good == updates_until_growth) {
    state_.value *= 2;
    state_.good = 0;
  }
  return true;
}

}  // namespace orrery::executor
