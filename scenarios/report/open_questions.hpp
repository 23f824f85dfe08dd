#pragma once
// Of a stack that no run was fitted to: the answers about its source that would change its
// prediction most. Each is a switch of the profile, answered the other way.

#include <string>
#include <vector>

#include "models/prediction/prediction.hpp"

namespace orrery::scenarios {

struct OpenQuestion {
  std::string question;  // "which attention kernel"
  double change = 0;     // of the step if the other answer holds, a share
};

/// The two that change the step most, by half a percent or more, largest first. Empty for a stack
/// whose own runs say how right it is.
std::vector<OpenQuestion> open_questions(const models::Question& question, Time step);

}  // namespace orrery::scenarios
