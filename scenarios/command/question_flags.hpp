#pragma once
// The flags by which every command that predicts something is told what to predict.

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/scenario.hpp"

namespace orrery::scenarios {

struct QuestionFlags {
  std::optional<std::string> scenario;
  Parts parts;
  std::vector<std::string> changes;  // --set

  /// SCENARIO --model --cluster --plan --software --set.
  void add_to(CLI::App& command);
  /// The scenario with everything laid over it. Errors: InputError.
  Scenario load() const;
};

}  // namespace orrery::scenarios
