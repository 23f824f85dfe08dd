#pragma once
// The shipped scenarios on one GPU, small enough to execute on the GPU of this machine.

#include <string>
#include <vector>

#include "models/prediction/prediction.hpp"

namespace orrery::scenarios {

struct NamedQuestion {
  std::string name;
  models::Question question;
};

std::vector<NamedQuestion> one_gpu_scenarios();

}  // namespace orrery::scenarios
