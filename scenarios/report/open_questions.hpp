#pragma once
// For a software stack that no run was fitted to: the switches of its profile (facts about its
// source code) that would change the predicted step most if set the other way.

#include <string>
#include <vector>

#include "models/prediction/prediction.hpp"

namespace orrery::scenarios {

struct OpenQuestion {
  std::string question;  // "attention kernel"
  double change = 0;     // relative, of the step with the switch the other way
};

/// The two that change the step most, by half a percent or more, largest first. Empty for a stack
/// that has runs of its own, which show how accurate it is.
std::vector<OpenQuestion> open_questions(const models::Question& question, Time step);

}  // namespace orrery::scenarios
