#pragma once
// The flags that say what to predict, the same in every command that predicts something.

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/scenario/scenario_request.hpp"
#include "scenarios/whatif/variants.hpp"

namespace orrery::scenarios {

struct QuestionFlags {
  std::optional<std::string> scenario;
  ScenarioParts parts;
  std::optional<std::string> site;
  std::vector<std::string> changes;  // --set

  /// SCENARIO --model --cluster --plan --software --year --site --set.
  void add_to(CLI::App& command);
  /// The same without SCENARIO, for a command whose first word may be another file.
  void add_flags_to(CLI::App& command);
  /// Errors: a --set that is not POINTER=VALUE: InputError
  ScenarioRequest request() const;
  /// The scenario with all flags applied. Errors: InputError.
  Scenario load() const { return request().load(); }
  /// The scenario with all flags but the --set that list values, `/plan/tensor=2,4,8`, and these.
  /// Errors: InputError
  std::pair<Scenario, std::vector<ValueList>> load_with_lists() const;
};

}  // namespace orrery::scenarios
