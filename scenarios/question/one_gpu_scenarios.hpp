#pragma once
// The shipped scenarios of one GPU: small enough to be executed on whatever GPU is here.

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
